// Command driver is a sample device driver: it streams simulated accelerators of this node, prepares them for pods, and
// reports their health.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	devices "example.com/driver/gen/nodekeeper/devices/v1alpha1"
	registration "example.com/driver/gen/pluginregistration/v1"
)

//go:generate npx buf generate ../.. --template buf.gen.yaml --path ../../proto/nodekeeper/devices --path ../../proto/pluginregistration

const contract = "nodekeeper.devices.v1alpha1"

var (
	socketDir = flag.String("socket-dir", "/var/lib/nodekeeper/plugins_registry", "the directory that the agent watches")
	name      = flag.String("name", "accelerators.example.com", "the driver's name, by which claims select it")
	count     = flag.Int("count", 8, "how many accelerators")
	interval  = flag.Duration("interval", 5*time.Second, "how often the health of one changes")
	startedAt = time.Now()
)

type driver struct {
	registration.UnimplementedRegistrationServer
	devices.UnimplementedDeviceDriverServer
	devices.UnimplementedDevicePreparationServer
	devices.UnimplementedDeviceHealthReportServer
}

func (driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	versions := []string{contract, contract + ".DevicePreparation", contract + ".DeviceHealthReport"}
	return &registration.PluginInfo{Type: "DRAPlugin", Name: *name, SupportedVersions: versions}, nil
}

func (driver) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", status.PluginRegistered, status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (driver) ListAndWatchDevices(_ *devices.ListAndWatchDevicesRequest, stream devices.DeviceDriver_ListAndWatchDevicesServer) error {
	return onChanges(stream.Context(), func(failing int) error {
		pool := &devices.Pool{} // Without a name it is called after the node.
		for number := range *count {
			model, healthy := []string{"alpha", "beta"}[number%2], number != failing
			pool.Devices = append(pool.Devices, &devices.Device{
				Name:       fmt.Sprintf("accelerator-%d", number),
				Attributes: map[string]*devices.Attribute{"model": {String_: &model}, "healthy": {Bool: &healthy}},
				Capacity:   map[string]*devices.Capacity{"memory": {Value: "40Gi"}},
			})
		}
		return stream.Send(&devices.ListAndWatchDevicesResponse{Pools: []*devices.Pool{pool}})
	})
}

func (driver) WatchDeviceHealth(_ *devices.WatchDeviceHealthRequest, stream devices.DeviceHealthReport_WatchDeviceHealthServer) error {
	return onChanges(stream.Context(), func(failing int) error {
		report := &devices.WatchDeviceHealthResponse{}
		for number := range *count {
			health := &devices.DeviceHealth{Device: fmt.Sprintf("accelerator-%d", number), Healthy: number != failing}
			if number == failing {
				health.Message = "simulated failure"
			}
			report.Devices = append(report.Devices, health)
		}
		return stream.Send(report)
	})
}

func (driver) PrepareDevices(_ context.Context, claim *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
	answer := &devices.PrepareDevicesResponse{}
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
		answer.Devices = append(answer.Devices, &devices.PreparedDevice{
			Request: device.Request, Pool: device.Pool, Device: device.Device, ShareId: device.ShareId,
			Edits: &devices.ContainerEdits{
				Env:         []string{variable + "=" + config.Mode},
				DeviceNodes: []*devices.DeviceNode{{Path: "/dev/" + device.Device, HostPath: "/dev/null"}},
			},
		})
	}
	return answer, nil
}

// Nothing is set up on the node, so there is nothing to undo. An accelerator that a claim had for monitoring (AdminAccess)
// may be in use by other claims: a driver of real devices must not reset it.
func (driver) UnprepareDevices(_ context.Context, claim *devices.UnprepareDevicesRequest) (*devices.UnprepareDevicesResponse, error) {
	for _, device := range claim.Devices {
		if !device.AdminAccess {
			log.Printf("free: %s", device.Device)
		}
	}
	return &devices.UnprepareDevicesResponse{}, nil
}

// onChanges sends the number of the accelerator that fails, -1 where all are healthy; again after each change.
func onChanges(ctx context.Context, send func(failing int) error) error {
	for {
		elapsed := time.Since(startedAt)
		tick, failing := int(elapsed / *interval), -1
		if tick%2 == 1 && *count > 0 {
			failing = tick / 2 % *count
		}
		if err := send(failing); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(tick+1)**interval - elapsed):
		}
	}
}

// removeStaleSockets removes sockets of this driver's instances that were killed: no process listens on them.
func removeStaleSockets() {
	paths, _ := filepath.Glob(filepath.Join(*socketDir, *name+"-"+strings.Repeat("[0-9a-f]", 8)+".sock"))
	for _, path := range paths {
		// A connection to any other file is refused too.
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
			continue
		}
		connection, err := net.Dial("unix", path)
		if err == nil {
			_ = connection.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	}
}

func main() {
	flag.Parse()
	removeStaleSockets()
	// Each instance has its own socket: in a rolling update with surge, the agent registers the new instance before the old
	// one ends.
	random := make([]byte, 4)
	_, _ = rand.Read(random)
	instance := hex.EncodeToString(random)
	// The agent skips hidden names: the socket accepts connections as soon as it is visible.
	socket, hidden := filepath.Join(*socketDir, *name+"-"+instance+".sock"), filepath.Join(*socketDir, "."+instance+".sock")
	listener, err := net.Listen("unix", hidden)
	if err == nil {
		err = os.Rename(hidden, socket)
	}
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, driver{})
	devices.RegisterDeviceDriverServer(server, driver{})
	devices.RegisterDevicePreparationServer(server, driver{})
	devices.RegisterDeviceHealthReportServer(server, driver{})
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		_ = os.Remove(socket)
		server.Stop()
	})
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
