//go:build tools

// Package tools keeps what kohort's test bed builds in this module's requirements.
package tools

import (
	_ "k8s.io/kubernetes/test/e2e"
)
