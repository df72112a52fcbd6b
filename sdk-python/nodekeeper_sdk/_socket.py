"""Files of unix sockets: bound under hidden names, and removed if no process listens on them."""

import contextlib
import os
import re
import secrets
import socket
import stat

LONGEST_PATH = 107
PROBE_TIMEOUT = 1
_INSTANCE = re.compile(r"-[0-9a-f]{8}\.sock")


def instance_path(directory, name):
    return os.path.join(directory, f"{name}-{secrets.token_hex(4)}.sock")


def hidden_path(path):
    """Returns a path beside it that the agent skips: a socket accepts connections as soon as it is visible."""
    return os.path.join(os.path.dirname(path), f".{secrets.token_hex(4)}.sock")


def check_path(path, hidden):
    """Raises ValueError unless a socket can be placed at the path."""
    length = max(len(os.fsencode(path)), len(os.fsencode(hidden)))
    if length > LONGEST_PATH:
        raise ValueError(f"socket path {path} has {length} bytes, at most {LONGEST_PATH}")
    os.makedirs(os.path.dirname(path) or ".", mode=0o750, exist_ok=True)
    if probe(path) == "accepts":
        raise ValueError(f"another process serves {path}; is a second instance running?")
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise ValueError(f"{path} exists and is not a socket")


def publish(hidden, path):
    """Makes the socket visible, and returns its identity."""
    os.chmod(hidden, 0o600)
    identity = identity_at(hidden)
    os.rename(hidden, path)
    return identity


def identity_at(path):
    """Returns None without a file."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        return found.st_dev, found.st_ino
    return None


def remove_own(path, identity):
    """Removes the socket if this process still owns it."""
    if identity is not None and identity_at(path) == identity:
        os.unlink(path)


def remove_stale_sockets(directory, name):
    """Removes the sockets of killed instances of the plugin, on which no process listens."""
    with contextlib.suppress(OSError):
        for file in os.listdir(directory):
            path = os.path.join(directory, file)
            if file.startswith(name) and _INSTANCE.fullmatch(file[len(name) :]) and probe(path) == "refused":
                with contextlib.suppress(OSError):
                    os.unlink(path)


def probe(path):
    """Returns "accepts", "refused", or None if neither is known: a stopped process does not accept."""
    with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
        # A connection to any other file is refused, too.
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return None
        client.settimeout(PROBE_TIMEOUT)
        try:
            client.connect(path)
            return "accepts"
        except ConnectionRefusedError:
            return "refused"
    return None
