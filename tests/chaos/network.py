"""Bad networks: strangers that connect to a job, a proxy between ranks, a link between namespaces."""

import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time

from processes import POLL, marked_processes, open_files

# ---- strangers -----------------------------------------------------------------------------------

CHALLENGE = 32  # bytes that a process of a job sends first
HELLO = struct.Struct("=IiiII32s32s")  # protocol, rank, ranks, use, port, challenge, proof


def listening_ports(mark):
    """Loopback ports on which processes of a job listen."""
    sockets = {
        t[8:-1]
        for p in marked_processes(mark)
        for t in open_files(p.pid)
        if t.startswith("socket:[")
    }
    ports = set()
    with open("/proc/net/tcp") as file:
        for line in list(file)[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


class Strangers:
    """Connections to every port of a job, made in a thread until close()."""

    def __init__(self, mark, behave, seed, at_once=1):
        self._mark, self._behave, self._random, self._at_once = (
            mark,
            behave,
            random.Random(seed),
            at_once,
        )
        self._open, self._stop = [], threading.Event()
        self.connections = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(POLL):
            for port in listening_ports(self._mark):
                for _ in range(self._at_once):
                    self._connect(port)

    def _connect(self, port):
        try:
            stranger = socket.create_connection(("127.0.0.1", port), timeout=1)
        except OSError:
            return  # the job has just closed the port
        self.connections += 1
        try:
            if self._behave(stranger, self._random, self._stop):
                self._open.append(stranger)
                return
        except OSError:
            pass  # turned away
        stranger.close()

    def close(self):
        self._stop.set()
        self._thread.join()
        for stranger in self._open:
            stranger.close()


# What a stranger does; true: the connection stays open.


def send_garbage(stranger, draw, stop):
    stranger.sendall(draw.randbytes(draw.choice((1, 84, 1000, 100_000))))
    return draw.random() < 0.3


def stay_silent(stranger, draw, stop):
    return True


def close_half(stranger, draw, stop):
    stranger.shutdown(draw.choice((socket.SHUT_WR, socket.SHUT_RD)))
    return draw.random() < 0.5


def reset(stranger, draw, stop):
    stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def send_slowly(stranger, draw, stop):
    """One byte after the other."""
    for _ in range(20):
        stranger.sendall(draw.randbytes(1))
        if stop.wait(0.01):
            break
    return True


def send_wrong_greeting(stranger, draw, stop):
    """A greeting that is right but for its proof."""
    stranger.settimeout(1)
    stranger.recv(CHALLENGE, socket.MSG_WAITALL)
    use = draw.choice((0, 1, 2, 0xFFFFFFFF))
    hello = HELLO.pack(
        0x4D570002, draw.choice((1, -1, 7)), 2, use, 1, draw.randbytes(32), draw.randbytes(32)
    )
    stranger.sendall(hello)
    stranger.recv(64)
    return False


# ---- a proxy -------------------------------------------------------------------------------------


class Proxy:
    """Passes connections on to a port of this machine, and harms what passes.

    harm(number, bytes, passed) is called for what a connection carries after `passed` bytes in one
    direction, and returns what to send on; None: nothing any more, in both directions; b"": it waits.
    """

    def __init__(self, target, harm):
        self._target, self._harm = target, harm
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._stop = threading.Event()
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = self._connect()
            if far is None:
                near.close()
                continue
            self._sockets += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _connect(self):
        while not self._stop.wait(POLL):
            try:
                return socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                pass  # rank 0 does not listen yet
        return None

    def _pass(self, one, other):
        passed = 0
        try:
            while part := one.recv(1 << 16):
                harmed = self._harm(part, passed)
                if harmed is None:
                    break
                passed += len(part)
                other.sendall(harmed)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self._stop.set()
        self._listening.close()
        for end in self._sockets:
            end.close()


# ---- two network namespaces ------------------------------------------------------------------------

ADDRESSES = ("10.77.0.1", "10.77.0.2")
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


class Link:
    """Two network namespaces, and between them a link with delay and loss.

    Packets pass through this program, since not every kernel can delay and drop them itself.
    """

    def __init__(self, delay, loss, seed):
        """`delay`: seconds; `loss`: share of packets. Raises OSError if it is not permitted."""
        self.delay, self.loss, self.is_cut = delay, loss, False
        self._random = random.Random(seed)
        self._holders, self._devices = [], []
        self._stop = threading.Event()
        try:
            for address in ADDRESSES:
                self._add_end(address)
        except OSError:
            self.close()
            raise
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _add_end(self, address):
        here, there = socket.socketpair()
        holder = subprocess.Popen(
            ["unshare", "--net", sys.executable, __file__, str(there.fileno()), address],
            pass_fds=[there.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._holders.append(holder)
        there.close()
        with here:
            _, descriptors, _, _ = socket.recv_fds(here, 1, 1)
        if not descriptors:
            raise OSError("no network namespace with a tunnel device")
        self._devices.append(descriptors[0])

    def command_in(self, end):
        """To be put in front of a command that runs at this end."""
        return ["nsenter", "-t", str(self._holders[end].pid), "-n", "--"]

    def _carry(self):
        waiting = []  # (when to send, device, packet), in order
        while not self._stop.is_set():
            ready, _, _ = select.select(self._devices, [], [], POLL if waiting else 0.05)
            for device in ready:
                packet = os.read(device, 1 << 16)
                if not self.is_cut and self._random.random() >= self.loss:
                    other = self._devices[1 - self._devices.index(device)]
                    waiting.append((time.monotonic() + self.delay, other, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, device, packet = waiting.pop(0)
                os.write(device, packet)

    def close(self):
        self._stop.set()
        if hasattr(self, "_thread"):
            self._thread.join()
        for device in self._devices:
            os.close(device)
        for holder in self._holders:
            holder.stdin.close()
            holder.wait()


def hold_end(descriptor, address):
    """In the namespace: makes a tunnel device, hands it over, and waits for the end of the link."""
    import fcntl

    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"tun0", IFF_TUN | IFF_NO_PI))
    for command in (f"addr add {address}/24 dev tun0", "link set tun0 up", "link set lo up"):
        subprocess.run(["ip", *command.split()], check=True)
    with socket.socket(fileno=descriptor) as there:
        socket.send_fds(there, [b"x"], [device])
    os.close(device)
    sys.stdin.read()


if __name__ == "__main__":
    hold_end(int(sys.argv[1]), sys.argv[2])
