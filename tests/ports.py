"""For tests and benches: ports of this host."""
import random
import socket


def free_port():
    """A port of 127.0.0.1 for a program that listens by itself, later: nobody listens there, and the kernel gives it to no connection in between.

    As base/listener.h has it for C++.
    """
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first, last = map(int, file.read().split())
    of_nobody = [port for port in range(20000, 65536) if not first <= port <= last]
    for port in [*random.sample(of_nobody, min(200, len(of_nobody))), 0]:
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return one.getsockname()[1]
    raise OSError("no port of 127.0.0.1 is free")
