//go:build tools

// Package tools keeps what kohort's test environment builds in this module's requirements.
package tools

import (
	_ "helm.sh/helm/v4/cmd/helm"
)
