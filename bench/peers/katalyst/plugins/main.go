// Serves reporter plugins for the rows of reporting in `npm run bench:peers`. Each reports the time of its last change,
// milliseconds since -epoch, as a resource of its name, in a new message in each interval. Both sides read them. With
// -hung, one more plugin registers and answers nothing after that.
//
// They are in Go because katalyst's gRPC client sends the path of a socket as the authority of its calls, which Node's
// HTTP/2 server refuses.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	reporter "github.com/kubewharf/katalyst-api/pkg/protocol/reporterplugin/v1alpha1"
)

func main() {
	directory := flag.String("directory", "", "where the sockets are made")
	count := flag.Int("count", 0, "how many plugins report")
	hung := flag.Bool("hung", false, "whether another plugin, named hung, answers no call")
	interval := flag.Duration("interval", time.Second, "between two values of a plugin")
	epoch := flag.Int64("epoch", 0, "milliseconds of Unix time from which values count")
	flag.Parse()
	failed := make(chan error)
	if *hung {
		one := &plugin{name: "hung", hung: true}
		go func() { failed <- one.serve(*directory) }()
	}
	for at := range *count {
		one := &plugin{
			name: fmt.Sprintf("plugin-%d", at), epoch: *epoch, interval: *interval,
			// As plugins that know nothing of each other are.
			offset: *interval * time.Duration(at) / time.Duration(*count),
		}
		go func() { failed <- one.serve(*directory) }()
	}
	fmt.Fprintln(os.Stderr, <-failed)
	os.Exit(1)
}

type plugin struct {
	name             string
	epoch            int64
	interval, offset time.Duration
	hung             bool
}

func (p *plugin) serve(directory string) error {
	listener, err := net.Listen("unix", filepath.Join(directory, p.name+".sock"))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, p)
	reporter.RegisterReporterPluginServer(server, p)
	return server.Serve(listener)
}

func (p *plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: "ReporterPlugin", Name: p.name, SupportedVersions: []string{"v1alpha1"}}, nil
}

func (p *plugin) NotifyRegistrationStatus(
	context.Context, *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}

func (p *plugin) GetReportContent(
	ctx context.Context, _ *reporter.Empty,
) (*reporter.GetReportContentResponse, error) {
	if p.hung {
		<-ctx.Done()
	}
	return p.report(), nil
}

func (p *plugin) ListAndWatchReportContent(
	_ *reporter.Empty, stream reporter.ReporterPlugin_ListAndWatchReportContentServer,
) error {
	if p.hung {
		<-stream.Context().Done()
		return nil
	}
	time.Sleep(p.offset)
	ticker := time.NewTicker(p.interval)
	defer ticker.Stop()
	for {
		if err := stream.Send(p.report()); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (p *plugin) report() *reporter.GetReportContentResponse {
	value := time.Now().UnixMilli() - p.epoch
	return &reporter.GetReportContentResponse{Content: []*reporter.ReportContent{{
		GroupVersionKind: &metav1.GroupVersionKind{
			Group: "node.katalyst.kubewharf.io", Version: "v1alpha1", Kind: "CustomNodeResource",
		},
		Field: []*reporter.ReportField{{
			FieldType: reporter.FieldType_Status,
			FieldName: "Resources",
			Value:     fmt.Appendf(nil, `{"capacity":{"bench.io/%s":"%d"}}`, p.name, value),
		}},
	}}}
}
