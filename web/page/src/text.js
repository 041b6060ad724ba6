// Numbers as people read them, each with its unit.

export function percent(part) {
  return `${Math.round(part * 100)} %`;
}

export function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(count) >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${count >= 10 || Number.isInteger(count) ? Math.round(count) : count.toFixed(1)} ${units[unit]}`;
}

/// "12 of 48 GiB"
export function ofBytes(used, all) {
  const gib = (count) => (count / 2 ** 30 >= 10 || count === 0 ? Math.round(count / 2 ** 30) : (count / 2 ** 30).toFixed(1));
  return `${gib(used)} of ${gib(all)} GiB`;
}

/// 42 -> "42 s", 4000 -> "1 h 6 min", 7200 -> "2 h", 200000 -> "2 days 7 h": as base/duration.h.
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  const by = (text, rest, unit) => (rest === 0 ? text : `${text} ${rest} ${unit}`);
  return hours < 48 ? by(`${hours} h`, minutes % 60, 'min') : by(`${Math.floor(hours / 24)} days`, hours % 24, 'h');
}

export function clock(timeS, withSeconds = false) {
  const options = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...(withSeconds && { second: '2-digit' }) };
  return new Intl.DateTimeFormat('en-GB', options).format(new Date(timeS * 1000));
}

export function moment(timeS) {
  const options = { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  return new Intl.DateTimeFormat('en-GB', options).format(new Date(timeS * 1000));
}

/// [0, 1, 2, 7] -> "0-2,7"
export function rangesOf(numbers) {
  const ranges = [];
  for (const number of numbers) {
    if (ranges.at(-1)?.[1] === number - 1) ranges.at(-1)[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',');
}

/// 1 GPU, 2 GPUs
export function counted(count, thing) {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}

/// What a model is called where there is little room: "RTX 3090".
export function shortModel(model) {
  return (
    (model ?? '')
      .replace(/\b(NVIDIA|AMD|Intel|GeForce|Instinct|Tesla|Quadro|Radeon|Graphics|Corporation)\b/gi, '')
      .replace(/[-\s](PCIE?|SXM\d?)?[-\s]?(\d+)\s?GB\b.*/i, '')
      .replace(/\s+/g, ' ')
      .trim() || 'model unknown'
  );
}
