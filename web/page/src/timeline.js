// What the lanes are drawn of: bars of leases, the area of the time busy, marks of the axis. Pure.

/// The bars of a device: leases that are over, and those that are held.
export function barsOf(view, host) {
  const past = host.past.filter((lease) => lease.device === view.id);
  return [...past, ...view.leases].filter((lease) => lease.since_s !== undefined);
}

/// Where a time stands: the past on one scale, what is to come on another one to the right of `nowX`. `futureS` 0: there is
/// no more than the past.
export function timeScale({ fromS, nowS, futureS, left, nowX, right }) {
  return (timeS) => {
    if (timeS <= nowS || futureS === 0) return left + ((timeS - fromS) / (nowS - fromS)) * (nowX - left);
    return nowX + Math.min(1, (timeS - nowS) / futureS) * (right - nowX);
  };
}

/// Times at which the axis has marks: a round step, six of them or so, unless `most` says otherwise.
export function ticks(fromS, toS, most = 7) {
  const steps = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800];
  const step = steps.find((one) => (toS - fromS) / one <= most) ?? 604800;
  const marks = [];
  for (let at = Math.ceil(fromS / step) * step; at <= toS; at += step) marks.push(at);
  return marks;
}

/// The busy part of a row, or that of another measure, as the outline of an area; a step of which nothing is known is a
/// gap, and not a zero. Only what is between the two times.
export function area(history, fromS, toS, x, base, height, measure = 'busy') {
  const { start_s: startS, step_s: stepS, measures } = history;
  const clip = (timeS) => x(Math.min(Math.max(timeS, fromS), toS)).toFixed(1);
  let path = '';
  let isOpen = false;
  (measures[measure] ?? []).forEach((part, i) => {
    const atS = startS + i * stepS;
    if (part === null || atS + stepS <= fromS || atS >= toS) {
      if (isOpen) path += `V${base}Z`;
      isOpen = false;
      return;
    }
    const top = (base - height * Math.min(1, part)).toFixed(1);
    if (!isOpen) path += `M${clip(atS)} ${base}`;
    path += `V${top}H${clip(atS + stepS)}`;
    isOpen = true;
  });
  return isOpen ? `${path}V${base}Z` : path;
}

/// The mean of a measure between two times, of the steps of which it is known; undefined where it is of none.
export function mean(history, fromS, toS, measure) {
  const { start_s: startS, step_s: stepS, measures } = history;
  const known = (measures[measure] ?? []).filter((part, i) => {
    const atS = startS + i * stepS;
    return part !== null && atS + stepS > fromS && atS < toS;
  });
  return known.length > 0 ? known.reduce((sum, part) => sum + part, 0) / known.length : undefined;
}
