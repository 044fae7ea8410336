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
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Plan uses: one snapshot of a namespace, and the resolution that was computed from it.
// Gather fills all fields except Now and Owners. Every list must be complete.
type Input struct {
	// Now is the time of this call, and Namespace is the namespace of the plan. Both are required.
	Now       time.Time
	Namespace string
	// Resolution contains the versions to install.
	Resolution olmcore.Resolution
	// Owners contains the names of the Subscriptions that the plan is created for. If the Resolution is that of a Set,
	// pass Set.Subscriptions. If Owners is nil, the plan is created for all Subscriptions of the namespace, as in OLM.
	Owners []string
	// Subscriptions and InstallPlans contain all objects of the namespace.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	InstallPlans  olmcore.Observed[*v1alpha1.InstallPlan]
	// OperatorGroups contains all OperatorGroups of the namespace. The plan records the ServiceAccount that they specify.
	// It is not installed with another ServiceAccount.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// ClusterServiceVersions contains the ClusterServiceVersions of the namespace that have the name of a version in the
	// resolution.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// ConfigMaps contains the unpacked bundles of the resolution. These ConfigMaps are in the namespaces of the catalogs.
	ConfigMaps olmcore.Observed[*corev1.ConfigMap]
	Config     installplan.Config
}

// Outcome is the result of Plan: the writes, and the plan that the Subscriptions of the resolution should reference.
type Outcome struct {
	olmcore.Result
	// Plan references the plan of the resolution. The reference is zero until the plan is observed.
	Plan olmcore.Ref
	// Subscriptions contains the sorted names of the Subscriptions that should reference Plan:
	//   - Subscriptions that the resolution changes. The steps of the plan are written only after these reference the
	//     plan.
	//   - Subscriptions that wait for a version of the plan, but reference another plan that will not install it.
	Subscriptions []string
	// Generation is the plan's spec.generation. Write it to status.installPlanGeneration of the Subscriptions.
	Generation int
	// Lookups contains the bundle images that package unpack must unpack first, sorted by operator. No plan is created
	// before all of them are unpacked.
	Lookups []v1alpha1.BundleLookup
	// Refused explains why the resolution cannot have a plan. Report it in the condition BundleUnpackFailed. Its reason is
	// ReasonErrorPreventedUnpacking or ReasonPlanTooLarge. Refused is zero if a plan is possible or not needed.
	Refused olmcore.Cause
}

// lists names the lists of the Input.
func (in *Input) lists(v *inputs.ListVisit) {
	inside := inputs.InNamespace(in.Namespace)
	inputs.VisitList(v, "Subscriptions", &in.Subscriptions, inputs.Required, inside)
	inputs.VisitList(v, "InstallPlans", &in.InstallPlans, inputs.Required, inside)
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Required, inside)
	inputs.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, inputs.Required, inside)
	inputs.VisitList(v, "ConfigMaps", &in.ConfigMaps, inputs.Required)
}

// validate returns an *olmcore.InputError if the Input breaks its contract.
func (in *Input) validate() error {
	err := cmp.Or(inputs.Now(in.Now), inputs.NotEmpty("Namespace", in.Namespace))
	for i, o := range in.Resolution.Operators {
		err = cmp.Or(err, inputs.NotEmpty(fmt.Sprintf("Resolution.Operators[%d].Name", i), o.Name))
	}
	for i, s := range in.Resolution.Generated {
		if err == nil && (s == nil || s.Name == "" || s.Spec == nil) {
			return &olmcore.InputError{Field: fmt.Sprintf("Resolution.Generated[%d]", i), Problem: "has no name or no spec"}
		}
	}
	v := inputs.ValidateLists()
	in.lists(&v)
	return cmp.Or(err, v.Err(), in.Config.Validate())
}
