// Command podresources stands in for the kubelet's PodResources API, on the kubelet's own module. It answers what a
// file says at the time of the call, so that a test can steer it. SIGTERM ends it and removes its socket; SIGKILL
// leaves it behind, as a crash does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// script is what the file holds. The answers are in protobuf's JSON.
type script struct {
	Allocatable json.RawMessage `json:"allocatable"`
	List        json.RawMessage `json:"list"`
	// Calls wait until they are cancelled.
	Hang bool `json:"hang"`
}

type server struct {
	podresources.UnimplementedPodResourcesListerServer
	file string
}

func (s *server) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	response := &podresources.ListPodResourcesResponse{}
	err := s.answer(ctx, func(script script) json.RawMessage { return script.List }, response)
	return response, err
}

func (s *server) GetAllocatableResources(ctx context.Context, _ *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	response := &podresources.AllocatableResourcesResponse{}
	err := s.answer(ctx, func(script script) json.RawMessage { return script.Allocatable }, response)
	return response, err
}

func (s *server) answer(ctx context.Context, pick func(script) json.RawMessage, response proto.Message) error {
	content, err := os.ReadFile(s.file)
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	var said script
	if err := json.Unmarshal(content, &said); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if said.Hang {
		<-ctx.Done()
		log.Print("cancelled")
		return ctx.Err()
	}
	answer := pick(said)
	if len(answer) == 0 {
		return nil
	}
	return protojson.Unmarshal(answer, response)
}

func main() {
	socket := flag.String("socket", "", "the socket to serve")
	file := flag.String("file", "", "JSON that says what to answer")
	flag.Parse()

	if err := os.Remove(*socket); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		log.Fatal(err)
	}
	service := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(service, &server{file: *file})
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		<-signals
		service.Stop()
	}()
	if err := service.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
