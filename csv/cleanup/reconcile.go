// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"time"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// namespaceHold is how long a ClusterServiceVersion is held whose namespace is
// Terminating, from its deletion on.
const namespaceHold = 30 * time.Second

// Reconcile decides the next step of the cleanup of a ClusterServiceVersion that is being
// deleted and carries the finalizer; for any other it returns the zero Outcome, and for a
// copy that carries the finalizer the removal of it. The error is an *olmcore.InputError;
// whatever is wrong with the cluster goes into status and Diagnostics. Package csv calls
// it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go.
// Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	return decide(&in, stages), nil
}

func decide(in *Input, stages []stage) Outcome {
	c := in.ClusterServiceVersion
	switch {
	case !slices.Contains(c.Finalizers, Finalizer):
		return Outcome{}
	case c.IsCopied():
		return Outcome{Result: olmcore.Result{Actions: []olmcore.Action{
			withoutFinalizer(c, olmcore.Cause{Reason: ReasonCopyReleased, Message: "a copy has nothing to clean up"}),
		}}}
	case c.DeletionTimestamp == nil:
		return Outcome{}
	}
	f := factsOf(in)
	switch {
	case in.Config.Disabled:
		return release(f, progress{stage: StageRelease}, "cleanup is disabled")
	case f.orphaned:
		return abandon(f, progress{stage: StageRelease}, "deleted with orphan propagation")
	}
	p := progressOf(f, stages)
	switch {
	case f.override == OverrideAbandon:
		return abandon(f, p, "abandoned by annotation")
	case f.namespaceGone && f.age >= namespaceHold:
		return abandon(f, p, "the namespace is Terminating")
	case p.holds():
		return hold(f, p)
	}
	return release(f, p, "nothing is left to clean up")
}

func withoutFinalizer(c *owned.CSV, why olmcore.Cause) olmcore.Action {
	after := c.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == Finalizer })
	return olmcore.UpdateOf(c, after, why)
}
