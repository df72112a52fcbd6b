package nodekeeper

import (
	"context"
	"sync"
)

// latest holds the newest value of a report for any number of streams. A slow stream skips values.
type latest[T any] struct {
	mu      sync.Mutex
	changed chan struct{}
	// number counts values and failures; the current value has the number valueAt, the failure failedAt.
	number, valueAt, failedAt int
	value                     T
	failure                   error
}

func newLatest[T any]() *latest[T] { return &latest[T]{changed: make(chan struct{})} }

func (l *latest[T]) set(value T) {
	l.update(func(number int) { l.value, l.valueAt, l.failure = value, number, nil })
}

// fail fails the streams that have the current value, and calls, until the next value.
func (l *latest[T]) fail(err error) {
	l.update(func(number int) { l.failure, l.failedAt = err, number })
}

func (l *latest[T]) update(change func(number int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	change(l.number)
	close(l.changed)
	l.changed = make(chan struct{})
}

// failed returns the error since which there was no value, and its number; nil and 0 if there is none.
func (l *latest[T]) failed() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		return 0, nil
	}
	return l.failedAt, l.failure
}

// after returns the value if its number is above seen, and waits for the next one otherwise. It returns the failure if
// its number is above seen and there is no such value.
func (l *latest[T]) after(ctx context.Context, seen int) (value T, number int, err error) {
	for {
		l.mu.Lock()
		if l.valueAt > seen {
			defer l.mu.Unlock()
			return l.value, l.valueAt, nil
		}
		if l.failure != nil && l.failedAt > seen {
			defer l.mu.Unlock()
			return value, 0, l.failure
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return value, 0, context.Cause(ctx)
		}
	}
}

// each sends the value and each later one until a send or the report fails, or the context ends. If the report failed
// before, it waits until the report is restarted.
func (l *latest[T]) each(ctx context.Context, send func(T) error) error {
	seen, _ := l.failed()
	for {
		value, number, err := l.after(ctx, seen)
		if err != nil {
			return err
		}
		if err := send(value); err != nil {
			return err
		}
		seen = number
	}
}
