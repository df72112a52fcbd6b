// Command driver is a sample device driver: it streams simulated accelerators of this node, prepares them for pods, and
// reports their health.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"strings"
	"syscall"
	"time"

	nodekeeper "github.com/nodekeeper/nodekeeper/sdk-go"
	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

var (
	socketDir = flag.String("socket-dir", "/var/lib/nodekeeper/plugins_registry", "the directory that the agent watches")
	name      = flag.String("name", "accelerators.example.com", "the driver's name, by which claims select it")
	count     = flag.Int("count", 8, "how many accelerators")
	interval  = flag.Duration("interval", 5*time.Second, "how often the health of one changes")
	startedAt = time.Now()
)

func main() {
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	options := nodekeeper.Options{Name: *name, SocketDir: *socketDir}
	driver := nodekeeper.DeviceDriver{Devices: reportDevices, Health: reportHealth, Prepare: prepare, Unprepare: unprepare}
	if err := nodekeeper.ServeDeviceDriver(ctx, options, driver); err != nil {
		log.Fatal(err)
	}
}

func reportDevices(ctx context.Context, send func([]*devices.Pool)) error {
	onChanges(ctx, func(failing int) {
		pool := &devices.Pool{} // Without a name it is called after the node.
		for number := range *count {
			model, healthy := []string{"alpha", "beta"}[number%2], number != failing
			pool.Devices = append(pool.Devices, &devices.Device{
				Name:       fmt.Sprintf("accelerator-%d", number),
				Attributes: map[string]*devices.Attribute{"model": {String_: &model}, "healthy": {Bool: &healthy}},
				Capacity:   map[string]*devices.Capacity{"memory": {Value: "40Gi"}},
			})
		}
		send([]*devices.Pool{pool})
	})
	return nil
}

func reportHealth(ctx context.Context, send func([]*devices.DeviceHealth)) error {
	onChanges(ctx, func(failing int) {
		var report []*devices.DeviceHealth
		for number := range *count {
			health := &devices.DeviceHealth{Device: fmt.Sprintf("accelerator-%d", number), Healthy: number != failing}
			if number == failing {
				health.Message = "simulated failure"
			}
			report = append(report, health)
		}
		send(report)
	})
	return nil
}

func prepare(_ context.Context, claim *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
	response := &devices.PrepareDevicesResponse{}
	for _, device := range claim.Devices {
		config := struct{ Mode string }{"exclusive"}
		for _, each := range device.Configuration {
			if err := json.Unmarshal([]byte(each.Parameters), &config); err != nil {
				return nil, err // The message reaches those who describe the pod.
			}
		}
		if config.Mode != "exclusive" && config.Mode != "timeSliced" {
			return nil, fmt.Errorf("mode %q is neither \"exclusive\" nor \"timeSliced\"", config.Mode)
		}
		variable := strings.ToUpper(strings.ReplaceAll(device.Device, "-", "_"))
		response.Devices = append(response.Devices, nodekeeper.Prepared(device, &devices.ContainerEdits{
			Env:         []string{variable + "=" + config.Mode},
			DeviceNodes: []*devices.DeviceNode{{Path: "/dev/" + device.Device, HostPath: "/dev/null"}},
		}))
	}
	return response, nil
}

// Nothing is set up on the node, so there is nothing to undo. An accelerator that a claim had for monitoring (AdminAccess)
// may be in use by other claims: a driver of real devices must not reset it.
func unprepare(_ context.Context, claim *devices.UnprepareDevicesRequest) error {
	for _, device := range claim.Devices {
		if !device.AdminAccess {
			log.Printf("free: %s", device.Device)
		}
	}
	return nil
}

// onChanges sends the number of the accelerator that fails, -1 if all are healthy; again after each change.
func onChanges(ctx context.Context, send func(failing int)) {
	for ctx.Err() == nil {
		elapsed := time.Since(startedAt)
		tick, failing := int(elapsed / *interval), -1
		if tick%2 == 1 && *count > 0 {
			failing = tick / 2 % *count
		}
		send(failing)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(tick+1)**interval - elapsed):
		}
	}
}
