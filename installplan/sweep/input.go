// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"cmp"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses: one snapshot of a namespace. Gather fills all fields except Now, Lookups
// and Checkpoint.
type Input struct {
	// Now is the time of this call, and Namespace is the namespace to sweep. Both are required.
	Now       time.Time
	Namespace string
	// Namespaces contains the Namespace object. The list is empty if the Namespace does not exist. Reconcile changes
	// nothing while the Namespace is Terminating or the list is incomplete.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// Subscriptions and InstallPlans contain all objects of the namespace. Both lists must be complete.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	InstallPlans  olmcore.Observed[*v1alpha1.InstallPlan]
	// Steps contains an entry for each Complete plan that a Subscription references, with the observed objects of its
	// steps. The objects of a plan without an entry are not checked.
	Steps []StepObjects
	// ConfigMaps contains the ConfigMaps of the namespace with unpacked bundles.
	ConfigMaps olmcore.Observed[*corev1.ConfigMap]
	// OtherPlans contains the InstallPlans of other namespaces that need one of the bundles in ConfigMaps. If OtherPlans
	// is incomplete, no ConfigMap is deleted. The list is needed, and Gather reads it, only if there are ConfigMaps.
	OtherPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// Lookups contains the bundles that the caller is unpacking for any namespace. Their ConfigMaps are not deleted.
	Lookups []v1alpha1.BundleLookup
	Config  installplan.Config
	// Checkpoint is Outcome.Checkpoint of an earlier call for this namespace. Nil is always correct, but makes the call
	// slower.
	Checkpoint *olmcore.Checkpoint
}

// StepObjects contains the existing objects of the steps of one plan.
type StepObjects struct {
	// InstallPlan is the UID of the plan.
	InstallPlan types.UID
	Objects     []olmcore.Object
	// Unread is a kind of object that was not read, or zero. If Unread is set, missing objects of the plan are not
	// reported.
	Unread schema.GroupVersionKind
}

// Outcome is the result of Reconcile, and a Checkpoint that the caller passes to the next call.
type Outcome = olmcore.Outcome

// lists names the lists of the Input.
func (in *Input) lists(v *inputs.ListVisit) {
	inside := inputs.InNamespace(in.Namespace)
	inputs.VisitList(v, "Namespaces", &in.Namespaces, inputs.Optional, named(in.Namespace))
	inputs.VisitList(v, "Subscriptions", &in.Subscriptions, inputs.Required, inside)
	inputs.VisitList(v, "InstallPlans", &in.InstallPlans, inputs.Required, inside)
	inputs.VisitList(v, "ConfigMaps", &in.ConfigMaps, inputs.Optional, inside)
	inputs.VisitList(v, "OtherPlans", &in.OtherPlans, inputs.Optional)
}

// named returns the Check that a Namespace has a name.
func named(namespace string) inputs.Check {
	return func(o olmcore.Object) (field, problem string) {
		if o.GetName() == namespace {
			return "", ""
		}
		return "", "is not " + namespace
	}
}

// cover adds to a Coverage everything on which the decision depends.
func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	v := inputs.CoverLists(c)
	in.lists(&v)
	c = v.Coverage()
	checkpoint.CoverValue(&c, in.Namespace)
	checkpoint.CoverValue(&c, len(in.Steps))
	for _, s := range in.Steps {
		checkpoint.CoverValue(&c, s.InstallPlan)
		checkpoint.CoverValue(&c, s.Unread)
		checkpoint.CoverObjects(&c, s.Objects, true)
	}
	checkpoint.CoverValue(&c, len(in.Lookups))
	for _, l := range in.Lookups {
		var source corev1.ObjectReference
		if l.CatalogSourceRef != nil {
			source = *l.CatalogSourceRef
		}
		checkpoint.CoverValue(&c, l.Path)
		checkpoint.CoverValue(&c, source)
	}
	checkpoint.CoverFunc(&c, in.Config, installplan.Config.Equal)
	return c
}

// object returns the Namespace, as the target of Diagnostics.
func (in *Input) object() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Namespace}}
}

// validate returns an *olmcore.InputError if the Input breaks its contract.
func (in *Input) validate() error {
	if err := cmp.Or(inputs.Now(in.Now), inputs.NotEmpty("Namespace", in.Namespace)); err != nil {
		return err
	}
	for i, s := range in.Steps {
		for j, o := range s.Objects {
			if olmcore.KeyOf(o) == (olmcore.Key{}) {
				return &olmcore.InputError{Field: fmt.Sprintf("Steps[%d].Objects[%d]", i, j), Problem: "is nil or has no kind"}
			}
		}
	}
	v := inputs.ValidateLists()
	in.lists(&v)
	return cmp.Or(v.Err(), in.Config.Validate())
}
