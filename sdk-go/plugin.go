package nodekeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	registration "github.com/nodekeeper/nodekeeper/sdk-go/gen/pluginregistration/v1"
)

// Options of all plugins.
type Options struct {
	// Name is unique among the node's plugins of the type: letters, digits, '.', '-' and '_', at most 253 characters. The
	// name of a device driver is a DNS subdomain of at most 63 characters.
	Name string
	// SocketDir is the directory that the agent watches. It is created if it is missing.
	SocketDir string
	// SocketPath is for a fixed path, at most 107 bytes. Default: a path in SocketDir for each instance.
	SocketPath string
	// Log is by default slog.Default().
	Log *slog.Logger
	// OnServing is called each time the socket is served.
	OnServing func(socketPath string)
	// OnRegistered is called when the agent registered the plugin.
	OnRegistered func()
	// OnRefused is called when the agent refused the plugin.
	OnRefused func(reason string)
}

const (
	checkInterval   = time.Second
	shutdownTimeout = time.Second
	warnAfter       = 10 * time.Second
)

var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	errStopping = status.Error(codes.Unavailable, "the plugin is stopping")
)

// kind is what is specific to a type of plugin.
type kind struct {
	pluginType string
	versions   []string
	// maxRequestBytes is by default gRPC's 4 MiB.
	maxRequestBytes int
	// addServices is called for each new socket. The context ends when the plugin stops.
	addServices func(ctx context.Context, server *grpc.Server)
	// reports run beside the services.
	reports []func(ctx context.Context, log *slog.Logger)
}

type plugin struct {
	Options
	kind
	registrationState
	registration.UnimplementedRegistrationServer
}

// serve serves until the context ends, and removes the socket then. It returns an error if the plugin can't be served, or
// if another process takes its socket.
func serve(ctx context.Context, options Options, kind kind) error {
	p, err := newPlugin(options, kind)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	var reports sync.WaitGroup
	for _, report := range kind.reports {
		reports.Go(func() { report(ctx, p.Log) })
	}
	// Reports that ignore their context must not delay the end.
	defer func() { waitFor(reports.Wait, shutdownTimeout) }()
	defer stop(errStopping)
	return p.keepServing(ctx)
}

func newPlugin(options Options, kind kind) (*plugin, error) {
	if !namePattern.MatchString(options.Name) {
		return nil, fmt.Errorf("name %.100q: a name has 1 to 253 characters out of letters, digits, '.', '-' and '_', and begins and ends with a letter or digit", options.Name)
	}
	if options.SocketPath == "" && options.SocketDir == "" {
		return nil, errors.New(`SocketDir is missing: the directory that the agent watches, such as "/var/lib/nodekeeper/plugins_registry"`)
	}
	if options.SocketPath == "" {
		removeStaleSockets(options.SocketDir, options.Name)
		options.SocketPath = filepath.Join(options.SocketDir, options.Name+"-"+randomID()+".sock")
	}
	options.Log = options.log()
	return &plugin{Options: options, kind: kind}, nil
}

// log returns the log of the plugin.
func (o Options) log() *slog.Logger {
	log := o.Log
	if log == nil {
		log = slog.Default()
	}
	return log.With("plugin", o.Name)
}

func (p *plugin) keepServing(ctx context.Context) error {
	server, socket, err := p.listen(ctx)
	if err != nil {
		return err
	}
	defer func() {
		socket.remove()
		waitFor(server.GracefulStop, shutdownTimeout)
		server.Stop()
	}()
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if socket.isOurs() {
			p.warnIfUnregistered(p.Log, p.SocketPath)
			continue
		}
		if accepts(p.SocketPath) {
			return fmt.Errorf("another process took the socket %s", p.SocketPath)
		}
		p.Log.Warn("socket disappeared, serving again", "socket", p.SocketPath)
		next, nextSocket, err := p.listen(ctx)
		if err != nil {
			// The directory may be created again.
			p.Log.Warn("failed to serve the socket, retrying", "error", err)
			continue
		}
		server.Stop()
		server, socket = next, nextSocket
	}
}

func (p *plugin) listen(ctx context.Context) (*grpc.Server, ownSocket, error) {
	p.registrationState.reset(p.SocketPath)
	listener, socket, err := listen(p.SocketPath)
	if err != nil {
		return nil, ownSocket{}, err
	}
	options := []grpc.ServerOption{grpc.UnaryInterceptor(recoverCall)}
	if p.maxRequestBytes > 0 {
		options = append(options, grpc.MaxRecvMsgSize(p.maxRequestBytes))
	}
	server := grpc.NewServer(options...)
	registration.RegisterRegistrationServer(server, p)
	p.addServices(ctx, server)
	go func() { _ = server.Serve(listener) }()
	p.Log.Info("serving", "socket", p.SocketPath)
	if p.OnServing != nil {
		p.OnServing(p.SocketPath)
	}
	return server, socket, nil
}

// GetInfo implements the registration. There is no endpoint: the registration socket serves everything.
func (p *plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	p.registrationState.asked()
	return &registration.PluginInfo{Type: p.pluginType, Name: p.Name, SupportedVersions: p.versions}, nil
}

// NotifyRegistrationStatus implements the registration.
func (p *plugin) NotifyRegistrationStatus(_ context.Context, answer *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	p.registrationState.answered(answer.PluginRegistered, answer.Error)
	if answer.PluginRegistered {
		p.Log.Info("registered")
		if p.OnRegistered != nil {
			p.OnRegistered()
		}
	} else {
		p.Log.Error("refused by the agent", "reason", answer.Error)
		if p.OnRefused != nil {
			p.OnRefused(answer.Error)
		}
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// registrationState is what is known of the registration since the socket was served.
type registrationState struct {
	mu                              sync.Mutex
	servedAt                        time.Time
	wasMissing, wasAsked, hasWarned bool
	isRegistered                    bool
	refusal                         string
}

// reset is called before the socket is served, because that creates a missing directory.
func (s *registrationState) reset(socketPath string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := os.Stat(filepath.Dir(socketPath))
	s.servedAt, s.wasMissing = time.Now(), err != nil
	s.wasAsked, s.hasWarned, s.isRegistered, s.refusal = false, false, false, ""
}

func (s *registrationState) asked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wasAsked = true
}

func (s *registrationState) answered(isRegistered bool, refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isRegistered, s.refusal = isRegistered, refusal
}

// warnIfUnregistered warns once each time the socket is served.
func (s *registrationState) warnIfUnregistered(log *slog.Logger, socketPath string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRegistered || s.hasWarned || time.Since(s.servedAt) < warnAfter {
		return
	}
	s.hasWarned = true
	log.Warn("not registered after 10 s", "socket", socketPath, "reason", s.reason(), "errorId", "NK1319")
}

func (s *registrationState) reason() string {
	switch {
	case s.refusal != "":
		return "the agent refused the registration: " + s.refusal
	case s.wasAsked:
		return "the agent called GetInfo and has not reported an outcome yet"
	case s.wasMissing:
		return "no agent called the socket: the directory was missing, so this plugin created it; no agent runs on this node, or it watches another directory"
	default:
		return "no agent called the socket: no agent runs on this node, it watches another directory (plugins.directories), or the socket's owner is not one that it accepts (plugins.allowedUids)"
	}
}

// waitFor waits until the function returns, at most the timeout.
func waitFor(work func(), timeout time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(timeout):
	}
}

// either returns a context that ends with the call or with the plugin.
func either(call, plugin context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(call)
	release := context.AfterFunc(plugin, func() { cancel(errStopping) })
	return ctx, func() {
		release()
		cancel(context.Canceled)
	}
}
