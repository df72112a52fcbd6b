package devcluster

import (
	"context"
	"os"
	"slices"
	"testing"

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
