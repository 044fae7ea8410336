// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"cmp"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// Input is everything that Bundle looks at. Gather fills all but Now. All objects are of the namespace of the lookup's
// CatalogSource and have the lookup's computed name, unless it is said otherwise; nil when a completed read found none.
type Input struct {
	// Now is required.
	Now time.Time
	// Lookup says which bundle to unpack. Its path and the namespace and name of its catalogSourceRef are required.
	Lookup         v1alpha1.BundleLookup
	CatalogSource  *v1alpha1.CatalogSource // the one that the lookup refers to
	ConfigMap      *corev1.ConfigMap
	Role           *rbacv1.Role
	RoleBinding    *rbacv1.RoleBinding
	ServiceAccount *corev1.ServiceAccount
	// Jobs are those with the label of the bundle, and the one of its name.
	Jobs olmcore.Observed[*batchv1.Job]
	// Pods are those of the Jobs. They only say why a Job takes its time.
	Pods olmcore.Observed[*corev1.Pod]
	// OperatorGroups of the namespace that the bundle is unpacked for. Their annotations tune the time limits.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	Config         installplan.Config
}

// Outcome is what Bundle asks for and what became of the lookup.
type Outcome struct {
	olmcore.Result
	// Lookup is the input's with the conditions that hold now.
	Lookup v1alpha1.BundleLookup
	// Bundle is what was unpacked, with the lookup's properties; nil until then.
	Bundle *olmcore.Bundle
	// Digest identifies the content of Bundle.
	Digest string
}

// lists names the lists of the Input, whose Jobs and Pods are of a namespace.
func (in *Input) lists(v *olmcore.ListVisit, namespace string) {
	inside := olmcore.InNamespace(namespace)
	olmcore.VisitList(v, "Jobs", &in.Jobs, olmcore.Required, inside)
	olmcore.VisitList(v, "Pods", &in.Pods, olmcore.Optional, inside)
	olmcore.VisitList(v, "OperatorGroups", &in.OperatorGroups, olmcore.Required)
}

// validate returns an *olmcore.InputError if the Input breaks its contract.
func (in *Input) validate() error {
	ref := in.Lookup.CatalogSourceRef
	if ref == nil || ref.Namespace == "" || ref.Name == "" {
		return &olmcore.InputError{Field: "Lookup.catalogSourceRef", Problem: "has no namespace or no name"}
	}
	v := olmcore.ValidateLists()
	in.lists(&v, ref.Namespace)
	return cmp.Or(
		input.Now(in.Now),
		input.NotEmpty("Lookup.path", in.Lookup.Path),
		input.NotEmpty("Config.OPMImage", in.Config.OPMImage),
		input.NotEmpty("Config.UtilImage", in.Config.UtilImage),
		v.Err(),
		in.Config.Validate(),
	)
}

func (out *Outcome) warn(reason string, target olmcore.Object, format string, args ...any) {
	out.Diagnostics = append(out.Diagnostics, olmcore.Diagnose(olmcore.Warning, reason, olmcore.RefOf(target), "", format, args...))
}

// Texts of the conditions of a lookup, as OLM writes them.
const (
	messageNotCompleted = "unpack job not completed"
	reasonIncomplete    = "JobIncomplete"
)

func (out *Outcome) notStarted(now time.Time) {
	out.condition(now, v1alpha1.BundleLookupPending, bundle.ReasonNotStarted, bundle.MessageNotStarted)
}

// condition sets a condition that is True. Unlike those of other objects its time changes with the reason.
func (out *Outcome) condition(now time.Time, kind v1alpha1.BundleLookupConditionType, reason, text string) {
	next := out.Lookup.GetCondition(kind)
	if next.Status != corev1.ConditionTrue || next.Reason != reason || next.LastTransitionTime == nil {
		next.LastTransitionTime = new(olmcore.Timestamp(now))
	}
	next.Status, next.Reason = corev1.ConditionTrue, reason
	next.Message = printable.Keep(next.Message, report.Clip(text))
	for i, c := range out.Lookup.Conditions {
		if c.Type == kind {
			out.Lookup.Conditions[i] = next
			return
		}
	}
	out.Lookup.Conditions = append(out.Lookup.Conditions, next)
}
