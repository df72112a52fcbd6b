package main

import (
	"errors"
	"fmt"

	"sigs.k8s.io/json"
)

// kind names a type of configuration.
type kind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// decode decodes opaque parameters. It refuses other kinds, and fields that are unknown or occur twice, so that a mistake in a
// ResourceClaim is not ignored.
func decode(parameters string, wanted kind, config any) error {
	var found kind
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(parameters), &found); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if found != wanted {
		return fmt.Errorf("configuration of kind %q in %q: expected %q in %q", found.Kind, found.APIVersion, wanted.Kind, wanted.APIVersion)
	}
	mistakes, err := json.UnmarshalStrict([]byte(parameters), config)
	if err := errors.Join(append(mistakes, err)...); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}
