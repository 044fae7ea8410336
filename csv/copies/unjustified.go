// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"cmp"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// unjustified is the table of reasons to delete a copy. To add a reason, add a row. broken returns a message, or an
// empty string if the reason does not apply.
var unjustified = []struct {
	reason string
	broken func(f *facts, c *v1alpha1.ClusterServiceVersion) string
}{
	{ReasonMarksDisagree, func(f *facts, c *v1alpha1.ClusterServiceVersion) string {
		if annotated := c.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey]; annotated != f.in.Key.Namespace {
			return fmt.Sprintf("label olm.copiedFrom is %s, but annotation olm.operatorNamespace is %q", f.in.Key.Namespace, annotated)
		}
		return ""
	}},
	{ReasonSourceGone, func(f *facts, _ *v1alpha1.ClusterServiceVersion) string {
		switch {
		case f.source == nil:
			return "ClusterServiceVersion " + f.in.Key.String() + " does not exist"
		case f.source.DeletionTimestamp != nil:
			return "ClusterServiceVersion " + f.in.Key.String() + " is being deleted"
		}
		return ""
	}},
	{ReasonSourceUncopiable, func(f *facts, _ *v1alpha1.ClusterServiceVersion) string {
		if f.source.IsUncopiable() {
			return fmt.Sprintf("the status of ClusterServiceVersion %s does not allow copies: %s",
				f.in.Key, cmp.Or(string(f.source.Status.Reason), "it has no phase"))
		}
		return ""
	}},
	{ReasonNotWatched, func(f *facts, c *v1alpha1.ClusterServiceVersion) string {
		if !f.annotated.Has(metav1.NamespaceAll) && !f.annotated.Has(c.Namespace) {
			return "the operator of ClusterServiceVersion " + f.in.Key.String() + " does not watch the namespace"
		}
		return ""
	}},
	{ReasonDisabled, func(f *facts, c *v1alpha1.ClusterServiceVersion) string {
		if f.isCopiable && !f.toggle.Keeps(f.targets.All(), c.Namespace) {
			return "OLMConfig cluster disables copies of operators that watch all namespaces"
		}
		return ""
	}},
}

// deletionCause returns the cause to delete a copy. It is the zero value if the copy stays, is no copy, or is already
// being deleted, alone or with its namespace.
func deletionCause(f *facts, c *v1alpha1.ClusterServiceVersion, isCopy bool) olmcore.Cause {
	if !isCopy || c.DeletionTimestamp != nil || f.terminating.Has(c.Namespace) {
		return olmcore.Cause{}
	}
	for _, rule := range unjustified {
		if message := rule.broken(f, c); message != "" {
			return olmcore.Cause{Reason: rule.reason, Message: message}
		}
	}
	return olmcore.Cause{}
}
