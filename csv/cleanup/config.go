// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Config tunes what happens to what a ClusterServiceVersion leaves behind. The zero
// value is right for most clusters. Whether custom resources are deleted at all says
// spec.cleanup.enabled of the ClusterServiceVersion.
type Config struct {
	// Disabled releases every ClusterServiceVersion at once and deletes nothing: for a
	// controller that is being removed for good.
	Disabled bool
	// OperandTimeout releases custom resources that are left after this time from the
	// deletion of the ClusterServiceVersion on. 0: none; they hold it until they are gone.
	OperandTimeout time.Duration
	// ClusterKinds are kinds of cluster-scoped objects to look for by owner labels,
	// besides those of RBAC, of admission webhooks, APIService, PriorityClass and the
	// kinds of the OpenShift console.
	ClusterKinds []schema.GroupVersionKind
	// SweepDelete lets package sweep delete what it finds instead of reporting it alone.
	SweepDelete bool
}

// Cover hands each field to a Coverage.
func (c Config) Cover(coverage *olmcore.Coverage) {
	olmcore.CoverValue(coverage, c.Disabled)
	olmcore.CoverValue(coverage, c.OperandTimeout)
	olmcore.CoverValues(coverage, c.ClusterKinds)
	olmcore.CoverValue(coverage, c.SweepDelete)
}

// Validate returns the *olmcore.InputError of a Config that breaks its contract, nil for
// none. Its field begins with "Config.Cleanup".
func (c Config) Validate() error {
	if c.OperandTimeout < 0 {
		return &olmcore.InputError{Field: "Config.Cleanup.OperandTimeout", Problem: "is negative"}
	}
	return nil
}
