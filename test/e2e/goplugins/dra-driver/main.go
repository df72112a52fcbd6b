// Command driver is a DRA driver of Kubernetes 1.30: it registers as a DRAPlugin and streams its devices as
// NamedResources. It tells what a file holds, again each time the file changes, so that a test can steer it.
// SIGTERM ends it and removes its sockets; SIGKILL leaves them behind, as a crash does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1alpha2"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1alpha3"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const pollInterval = 50 * time.Millisecond

// driver serves both the registration and the driver's own API.
type driver struct {
	drapb.UnimplementedNodeServer
	name     string
	endpoint string
	file     string
	stopped  chan struct{}
}

func (d *driver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type:              registerapi.DRAPlugin,
		Name:              d.name,
		Endpoint:          d.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", status.PluginRegistered, status.Error)
	return &registerapi.RegistrationStatusResponse{}, nil
}

// NodeListAndWatchResources sends all instances at the start and after each change of the file.
func (d *driver) NodeListAndWatchResources(_ *drapb.NodeListAndWatchResourcesRequest, stream drapb.Node_NodeListAndWatchResourcesServer) error {
	log.Print("watched")
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last := ""
	for {
		content, err := os.ReadFile(d.file)
		if err != nil {
			return err
		}
		if string(content) != last {
			resources := &resourceapi.NamedResourcesResources{}
			if err := json.Unmarshal(content, resources); err != nil {
				return err
			}
			model := &resourceapi.ResourceModel{NamedResources: resources}
			response := &drapb.NodeListAndWatchResourcesResponse{Resources: []*resourceapi.ResourceModel{model}}
			if err := stream.Send(response); err != nil {
				return err
			}
			last = string(content)
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-d.stopped:
			return nil
		case <-ticker.C:
		}
	}
}

func serve(path string, register func(*grpc.Server)) (*grpc.Server, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	register(server)
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Fatal(err)
		}
	}()
	return server, nil
}

func main() {
	name := flag.String("name", "gpu.example.com", "the driver's name")
	directory := flag.String("directory", "", "the directory that the kubelet, or who stands for it, watches")
	file := flag.String("file", "", "JSON of NamedResourcesResources")
	flag.Parse()

	d := &driver{
		name:     *name,
		endpoint: filepath.Join(filepath.Dir(*file), "dra.sock"),
		file:     *file,
		stopped:  make(chan struct{}),
	}
	service, err := serve(d.endpoint, func(server *grpc.Server) { drapb.RegisterNodeServer(server, d) })
	if err != nil {
		log.Fatal(err)
	}
	registration, err := serve(filepath.Join(*directory, *name+"-reg.sock"), func(server *grpc.Server) {
		registerapi.RegisterRegistrationServer(server, d)
	})
	if err != nil {
		log.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	close(d.stopped)
	registration.Stop()
	service.Stop()
}
