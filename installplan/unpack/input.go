// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"cmp"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Bundle uses. Gather fills all fields except Now. Unless a comment says otherwise, an
// object is in the namespace of the lookup's CatalogSource, and its name is computed from the bundle image. A field is
// nil if the object does not exist.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// Lookup names the bundle to unpack. Its path, and the namespace and name in its catalogSourceRef, are required.
	Lookup         v1alpha1.BundleLookup
	CatalogSource  *v1alpha1.CatalogSource // CatalogSource is the CatalogSource that Lookup references.
	ConfigMap      *corev1.ConfigMap
	Role           *rbacv1.Role
	RoleBinding    *rbacv1.RoleBinding
	ServiceAccount *corev1.ServiceAccount
	// Jobs contains the Jobs with the label of the bundle, and the Job whose name is computed from the bundle image.
	Jobs olmcore.Observed[*batchv1.Job]
	// Pods contains the Pods of the Jobs. Bundle uses them only to explain why a Job is not done.
	Pods olmcore.Observed[*corev1.Pod]
	// OperatorGroups contains the OperatorGroups of the namespace that the bundle is unpacked for. Their annotations
	// may change the timeout and the retry interval.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	Config         installplan.Config
}

// Outcome is the result of Bundle: the writes, the state of the lookup, and the unpacked bundle.
type Outcome struct {
	olmcore.Result
	// Lookup is Input.Lookup with its current conditions.
	Lookup v1alpha1.BundleLookup
	// Bundle is the unpacked bundle, with the properties of the lookup. Bundle is nil until the bundle is unpacked.
	Bundle *olmcore.Bundle
	// Digest is the digest of the content of Bundle. Digest is empty until the bundle is unpacked.
	Digest string
}

// lists names the lists of the Input, whose Jobs and Pods are of a namespace.
func (in *Input) lists(v *inputs.ListVisit, namespace string) {
	inside := inputs.InNamespace(namespace)
	inputs.VisitList(v, "Jobs", &in.Jobs, inputs.Required, inside)
	inputs.VisitList(v, "Pods", &in.Pods, inputs.Optional, inside)
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Required)
}

// validate returns an *olmcore.InputError if the Input breaks its contract.
func (in *Input) validate() error {
	ref := in.Lookup.CatalogSourceRef
	if ref == nil || ref.Namespace == "" || ref.Name == "" {
		return &olmcore.InputError{Field: "Lookup.catalogSourceRef", Problem: "has no namespace or no name"}
	}
	v := inputs.ValidateLists()
	in.lists(&v, ref.Namespace)
	return cmp.Or(
		inputs.Now(in.Now),
		inputs.NotEmpty("Lookup.path", in.Lookup.Path),
		inputs.NotEmpty("Config.OPMImage", in.Config.OPMImage),
		inputs.NotEmpty("Config.UtilImage", in.Config.UtilImage),
		v.Err(),
		in.Config.Validate(),
	)
}

// Texts of the conditions of a lookup, as OLM writes them.
const (
	messageNotCompleted = "unpack job not completed"
	reasonIncomplete    = "JobIncomplete"
)

// condition is a condition of a lookup that becomes True. The zero value changes nothing.
type condition struct {
	kind            v1alpha1.BundleLookupConditionType
	reason, message string
}

// notStarted is the condition of a lookup whose Job does not run yet.
var notStarted = pending(bundle.ReasonNotStarted, bundle.MessageNotStarted)

func pending(reason, message string) condition {
	return condition{v1alpha1.BundleLookupPending, reason, message}
}

// setIn returns the conditions of a lookup with this one. Unlike in other objects, its time changes with the reason.
func (c condition) setIn(lookup v1alpha1.BundleLookup, now time.Time) []v1alpha1.BundleLookupCondition {
	next := lookup.GetCondition(c.kind)
	if next.Status != corev1.ConditionTrue || next.Reason != c.reason || next.LastTransitionTime == nil {
		next.LastTransitionTime = new(olmcore.Timestamp(now))
	}
	next.Status, next.Reason = corev1.ConditionTrue, c.reason
	next.Message = printable.Keep(next.Message, printable.Clip(c.message))
	conditions := slices.Clone(lookup.Conditions)
	for i := range conditions {
		if conditions[i].Type == c.kind {
			conditions[i] = next
			return conditions
		}
	}
	return append(conditions, next)
}
