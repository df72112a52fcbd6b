package nodekeeper

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Report sends everything that a plugin reports, and again after each change. What was sent must not be modified.
//
// The last value stays if the function returns nil. If it returns an error, the agent shows the error's message until the
// next value, and the function is called again after 0.5 to 30 s.
type Report[T any] func(ctx context.Context, send func([]T)) error

const (
	// The agent keeps as much of a plugin's error.
	longestMessage = 500
	shortestDelay  = 500 * time.Millisecond
	longestDelay   = 30 * time.Second
	// A report that failed after this long is restarted with the shortest delay again.
	goodAfter = 10 * time.Second
)

// run stores the values of the report until it ends or the context does.
func (report Report[T]) run(ctx context.Context, values *latest[[]T], log *slog.Logger) {
	for delay := shortestDelay; ; {
		startedAt := time.Now()
		err := recovered(func() error { return report(ctx, values.set) })
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			log.Info("report ended, its last value stays")
			return
		}
		if time.Since(startedAt) > goodAfter {
			delay = shortestDelay
		}
		values.fail(reportError(err))
		// Half of the delay is random, so that the plugins of many nodes do not retry at the same time.
		wait := delay/2 + rand.N(delay/2)
		log.Error("report failed, starting it again", "error", err, "delay", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		delay = min(2*delay, longestDelay)
	}
}

// after returns a report that begins once the channel is closed.
func (report Report[T]) after(begin <-chan struct{}) Report[T] {
	return func(ctx context.Context, send func([]T)) error {
		select {
		case <-begin:
			return report(ctx, send)
		case <-ctx.Done():
			return nil
		}
	}
}

// recovered returns a panic of an author's function as an error, so that it ends one report or call and not the plugin.
func recovered(work func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return work()
}

// recoverCall does that for the calls of a server.
func recoverCall(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	err = recovered(func() (err error) {
		response, err = handler(ctx, request)
		return err
	})
	if _, isStatus := status.FromError(err); !isStatus {
		err = reportError(err)
	}
	return response, err
}

func reportError(err error) error { return status.Error(codes.Internal, truncated(err.Error())) }

// callError returns the error of a call that the author's function failed. The code of a gRPC status is kept.
func callError(err error) error {
	if err == nil {
		return nil
	}
	failure, isStatus := status.FromError(err)
	if !isStatus {
		return reportError(err)
	}
	// The message is a header, whose size is limited.
	proto := failure.Proto()
	proto.Message = truncated(proto.Message)
	return status.FromProto(proto).Err()
}

func truncated(message string) string {
	runes := []rune(message)
	return string(runes[:min(len(runes), longestMessage)])
}
