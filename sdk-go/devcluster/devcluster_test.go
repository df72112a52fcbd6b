package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	nodekeeper "github.com/nodekeeper/nodekeeper/sdk-go"
	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

func TestDevicesOfADriverArePublished(t *testing.T) {
	if os.Getenv("NODEKEEPER_AGENT") == "" {
		t.Skip("NODEKEEPER_AGENT is not set")
	}
	cluster := Start(t)
	const name = "coffee.example.com"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- nodekeeper.ServeDeviceDriver(ctx, nodekeeper.Options{Name: name, SocketDir: cluster.PluginDirectory}, nodekeeper.DeviceDriver{
			Devices: func(_ context.Context, send func([]*devices.Pool)) error {
				send([]*devices.Pool{{Devices: []*devices.Device{{Name: "machine-0"}, {Name: "-wrong"}}}})
				return nil
			},
		})
	}()
	cluster.Until("the valid device is published", func() (bool, error) {
		names, err := cluster.PublishedDevices(name)
		return slices.Equal(names, []string{"machine-0"}), err
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// recorder is a test that fails within another one.
type recorder struct {
	testing.TB
	message  string
	isFailed bool
}

func (r *recorder) Failed() bool { return r.isFailed }
func (r *recorder) FailNow()     { r.message = "ended"; runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fatal returns the message with which the function ends its test.
func fatal(t *testing.T, work func(recorder *recorder)) string {
	recorder, ended := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(ended)
		work(recorder)
	}()
	<-ended
	return recorder.message
}

func TestAnAgentThatDoesNotBecomeReadyIsNamed(t *testing.T) {
	before := timeout
	timeout = 500 * time.Millisecond
	defer func() { timeout = before }()
	program := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho still waiting >&2\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODEKEEPER_AGENT", program)
	if message := fatal(t, func(recorder *recorder) { Start(recorder) }); !strings.Contains(message, "still waiting") {
		t.Errorf("%q", message)
	}
}

func TestAWaitEndsWithItsTest(t *testing.T) {
	message := fatal(t, func(recorder *recorder) {
		recorder.isFailed = true
		(&Cluster{t: recorder}).Until("never", func() (bool, error) { return false, nil })
	})
	if message != "ended" {
		t.Errorf("%q", message)
	}
}
