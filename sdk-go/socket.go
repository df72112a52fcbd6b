package nodekeeper

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	longestSocketPath = 107
	probeTimeout      = time.Second
)

var instancePattern = regexp.MustCompile(`^-[0-9a-f]{8}\.sock$`)

// ownSocket is a socket file that this process serves.
type ownSocket struct {
	path string
	file os.FileInfo
}

func randomID() string {
	bytes := make([]byte, 4)
	_, _ = rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

// listen binds under a hidden name, which the agent skips, and renames it: a socket accepts connections as soon as it is
// visible. A stale file is replaced.
func listen(path string) (net.Listener, ownSocket, error) {
	directory := filepath.Dir(path)
	hidden := filepath.Join(directory, "."+randomID()+".sock")
	if longest := max(len(path), len(hidden)); longest > longestSocketPath {
		return nil, ownSocket{}, fmt.Errorf("socket path %s has %d bytes, at most %d", path, longest, longestSocketPath)
	}
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return nil, ownSocket{}, err
	}
	if accepts(path) {
		return nil, ownSocket{}, fmt.Errorf("another process serves %s; is a second instance running?", path)
	}
	if present, err := os.Lstat(path); err == nil && present.Mode().Type() != os.ModeSocket {
		return nil, ownSocket{}, fmt.Errorf("%s exists and is not a socket", path)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, ownSocket{}, err
	}
	listener.SetUnlinkOnClose(false)
	socket, err := publish(hidden, path)
	if err != nil {
		_ = listener.Close()
		_ = os.Remove(hidden)
		return nil, ownSocket{}, err
	}
	return listener, socket, nil
}

func publish(hidden, path string) (ownSocket, error) {
	if err := os.Chmod(hidden, 0o600); err != nil {
		return ownSocket{}, err
	}
	file, err := os.Lstat(hidden)
	if err != nil {
		return ownSocket{}, err
	}
	return ownSocket{path, file}, os.Rename(hidden, path)
}

func (s ownSocket) isOurs() bool {
	present, err := os.Lstat(s.path)
	return err == nil && os.SameFile(present, s.file)
}

func (s ownSocket) remove() {
	if s.isOurs() {
		_ = os.Remove(s.path)
	}
}

// removeStaleSockets removes the sockets of killed instances of the plugin, on which no process listens.
func removeStaleSockets(directory, name string) {
	files, _ := os.ReadDir(directory)
	for _, file := range files {
		rest, isOfName := strings.CutPrefix(file.Name(), name)
		// A connection to any other file is refused, too.
		if !isOfName || !instancePattern.MatchString(rest) || file.Type() != os.ModeSocket {
			continue
		}
		path := filepath.Join(directory, file.Name())
		if errors.Is(probe(path), syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	}
}

func accepts(path string) bool { return probe(path) == nil }

// probe returns the error of a connection. A stopped process does not accept.
func probe(path string) error {
	connection, err := net.DialTimeout("unix", path, probeTimeout)
	if err != nil {
		return err
	}
	return connection.Close()
}
