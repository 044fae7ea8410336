// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/olmcore"
)

// Input is everything that Plan looks at: one snapshot of a namespace and the resolution made from it. Gather fills all
// but Now. Every list is that of a completed read.
type Input struct {
	// Now and Namespace are required.
	Now       time.Time
	Namespace string
	// Resolution says what to install.
	Resolution olmcore.Resolution
	// Owners are the names of the Subscriptions that the plan is made for, as in Set.Subscriptions; Resolution is that of the same
	// Set. nil: all Subscriptions of the namespace, as in OLM.
	Owners []string
	// Subscriptions and InstallPlans of the namespace, all of them.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	InstallPlans  olmcore.Observed[*v1alpha1.InstallPlan]
	// OperatorGroups of the namespace, all of them: the plan runs under the ServiceAccount that they prescribe now, or
	// not at all.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// ClusterServiceVersions of the namespace that the resolution names.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// ConfigMaps are those that the bundle images of the resolution were unpacked into, in the namespaces of the
	// operators' catalogs.
	ConfigMaps olmcore.Observed[*corev1.ConfigMap]
	Config     installplan.Config
}

// Outcome is what Plan asks for, and the plan that the resolution's Subscriptions must refer to.
type Outcome struct {
	olmcore.Result
	// Plan is zero until the plan is observed.
	Plan olmcore.Ref
	// Subscriptions are the names of those that must refer to Plan, sorted: the ones that the resolution changes, which
	// Plan waits for before it writes the steps, and the ones that refer to a plan which never got any and whose
	// version this one installs.
	Subscriptions []string
	// Generation is the plan's spec.generation, for status.installPlanGeneration.
	Generation int
	// Lookups are the bundle images that must be unpacked first, sorted by operator; see package unpack. As long as
	// there is one, no plan is made.
	Lookups []v1alpha1.BundleLookup
	// Refused is why no plan can be made from the resolution, in the words of the condition BundleUnpackFailed. Its reason is
	// ReasonErrorPreventedUnpacking or ReasonPlanTooLarge. It is zero if a plan can be made, or need not be.
	Refused olmcore.Cause
}

// lists names the lists of the Input.
func (in *Input) lists(v *olmcore.ListVisit) {
	inside := olmcore.InNamespace(in.Namespace)
	olmcore.VisitList(v, "Subscriptions", &in.Subscriptions, olmcore.Required, inside)
	olmcore.VisitList(v, "InstallPlans", &in.InstallPlans, olmcore.Required, inside)
	olmcore.VisitList(v, "OperatorGroups", &in.OperatorGroups, olmcore.Required, inside)
	olmcore.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, olmcore.Required, inside)
	olmcore.VisitList(v, "ConfigMaps", &in.ConfigMaps, olmcore.Required)
}

// validate returns an *olmcore.InputError if the Input breaks its contract.
func (in *Input) validate() error {
	err := cmp.Or(input.Now(in.Now), input.NotEmpty("Namespace", in.Namespace))
	for i, o := range in.Resolution.Operators {
		err = cmp.Or(err, input.NotEmpty(fmt.Sprintf("Resolution.Operators[%d].Name", i), o.Name))
	}
	for i, s := range in.Resolution.Generated {
		if err == nil && (s == nil || s.Name == "" || s.Spec == nil) {
			return &olmcore.InputError{Field: fmt.Sprintf("Resolution.Generated[%d]", i), Problem: "has no name or no spec"}
		}
	}
	v := olmcore.ValidateLists()
	in.lists(&v)
	return cmp.Or(err, v.Err(), in.Config.Validate())
}
