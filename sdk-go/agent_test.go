package nodekeeper

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	registration "github.com/nodekeeper/nodekeeper/sdk-go/gen/pluginregistration/v1"
)

// served is a plugin that a test serves, and the agent's side of its socket.
type served struct {
	t         *testing.T
	directory string
	// stop ends the plugin and returns the error of its function, which ended receives.
	stop  func() error
	ended chan error
	// registered counts the agent's answers that reached the plugin.
	registered atomic.Int32
}

// start serves a plugin until the test ends.
func start(t *testing.T, name string, run func(ctx context.Context, options Options) error) *served {
	t.Helper()
	s := &served{t: t, directory: t.TempDir(), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	options := Options{Name: name, SocketDir: s.directory, OnRegistered: func() { s.registered.Add(1) }}
	go func() { s.ended <- run(ctx, options) }()
	s.stop = func() error {
		cancel()
		err := <-s.ended
		s.ended <- err
		return err
	}
	t.Cleanup(func() { _ = s.stop() })
	return s
}

// connect waits for the plugin's socket, and returns a connection to it.
func (s *served) connect() *grpc.ClientConn {
	s.t.Helper()
	var sockets []string
	until(s.t, "the socket is served", func() bool {
		sockets, _ = filepath.Glob(filepath.Join(s.directory, "*.sock"))
		return len(sockets) == 1 && accepts(sockets[0])
	})
	return dial(s.t, sockets[0])
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// register is the agent's side of the registration.
func register(t *testing.T, connection *grpc.ClientConn) *registration.PluginInfo {
	t.Helper()
	client := registration.NewRegistrationClient(connection)
	info, err := client.GetInfo(t.Context(), &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Fatal(err)
	}
	return info
}

// until waits for a condition, as long as a slow machine may take.
func until(t *testing.T, what string, isTrue func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !isTrue(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited without success: " + what)
		}
	}
}
