// Command reporter is a sample reporter plugin: it reports simulated widgets of this node, and changes how many can be used.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	nodekeeper "github.com/nodekeeper/nodekeeper/sdk-go"
	reporter "github.com/nodekeeper/nodekeeper/sdk-go/gen/reporterplugin/v1alpha1"
)

const (
	widgets = "example.nodekeeper.dev/widgets"
	total   = 16
)

var (
	socketDir = flag.String("socket-dir", "/var/lib/nodekeeper/plugins_registry", "the directory that the agent watches")
	name      = flag.String("name", "example-reporter", "the plugin's name")
	interval  = flag.Duration("interval", time.Second, "how often the number of usable widgets changes")
)

func main() {
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	options := nodekeeper.Options{Name: *name, SocketDir: *socketDir}
	if err := nodekeeper.ServeReporterPlugin(ctx, options, report); err != nil {
		log.Fatal(err)
	}
}

// report sends everything that the plugin reports, again after each change.
func report(ctx context.Context, send func([]*reporter.ReportContent)) error {
	for tick := 0; ctx.Err() == nil; tick++ {
		resources := map[string]map[string]string{
			"capacity":    {widgets: strconv.Itoa(total)},
			"allocatable": {widgets: strconv.Itoa(total - tick%5)},
		}
		send([]*reporter.ReportContent{
			nodekeeper.CustomNodeResource(nodekeeper.Status("resources", resources)),
			nodekeeper.Node(nodekeeper.Metadata("labels", map[string]string{"example.nodekeeper.dev/has-widgets": "true"})),
		})
		select {
		case <-ctx.Done():
		case <-time.After(*interval):
		}
	}
	return nil
}
