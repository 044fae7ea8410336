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
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses: one snapshot of a namespace. Gather fills all fields except Now, Lookups
// and Checkpoint.
type Input struct {
	// Now is the time of this call, and Namespace the namespace to sweep. Both are required.
	Now       time.Time
	Namespace string
	// Namespaces contains the Namespace object, or nothing if it does not exist. Reconcile changes nothing while the
	// namespace is Terminating or this list is incomplete.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// Subscriptions and InstallPlans contain all objects of the namespace. Both lists must be complete.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	InstallPlans  olmcore.Observed[*v1alpha1.InstallPlan]
	// Steps contains the observed objects of the steps of plans that are Complete and that a Subscription references.
	// The objects of a plan without an entry are not checked.
	Steps []StepObjects
	// ConfigMaps contains the ConfigMaps of the namespace with unpacked bundles.
	ConfigMaps olmcore.Observed[*corev1.ConfigMap]
	// OtherPlans contains the InstallPlans of other namespaces that need one of ConfigMaps. If the list is incomplete,
	// none of ConfigMaps is deleted. It is needed, and read by Gather, only if there are ConfigMaps.
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
	// Unread is a kind of object that was not read, or zero. If it is set, missing objects of the plan are not
	// reported.
	Unread schema.GroupVersionKind
}

// Outcome is the result of Reconcile, and a Checkpoint that the caller passes to the next call.
type Outcome = olmcore.Outcome

func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	olmcore.CoverValue(&c, in.Namespace)
	olmcore.CoverObjects(&c, in.Namespaces)
	olmcore.CoverObjects(&c, in.Subscriptions)
	olmcore.CoverObjects(&c, in.InstallPlans)
	olmcore.CoverValue(&c, len(in.Steps))
	for _, s := range in.Steps {
		olmcore.CoverValue(&c, s.InstallPlan)
		olmcore.CoverValue(&c, s.Unread)
		olmcore.CoverObjects(&c, olmcore.Found(s.Objects...))
	}
	olmcore.CoverObjects(&c, in.ConfigMaps)
	olmcore.CoverObjects(&c, in.OtherPlans)
	olmcore.CoverValue(&c, len(in.Lookups))
	for _, l := range in.Lookups {
		var source corev1.ObjectReference
		if l.CatalogSourceRef != nil {
			source = *l.CatalogSourceRef
		}
		olmcore.CoverValue(&c, l.Path)
		olmcore.CoverValue(&c, source)
	}
	olmcore.CoverFunc(&c, in.Config, installplan.Config.Equal)
	return c
}

// object is the namespace itself, for what is said about it.
func (in *Input) object() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Namespace}}
}

func (in *Input) validate() error {
	inside := olmcore.InNamespace(in.Namespace)
	err := cmp.Or(
		input.Now(in.Now),
		input.NotEmpty("Namespace", in.Namespace),
		olmcore.ValidateList("Namespaces", in.Namespaces, func(o olmcore.Object) (field, problem string) {
			if o.GetName() != in.Namespace {
				return "", "is not " + in.Namespace
			}
			return "", ""
		}),
	)
	for i, s := range in.Steps {
		for j, o := range s.Objects {
			if err == nil && olmcore.KeyOf(o) == (olmcore.Key{}) {
				return &olmcore.InputError{Field: fmt.Sprintf("Steps[%d].Objects[%d]", i, j), Problem: "is nil or has no kind"}
			}
		}
	}
	return cmp.Or(err,
		input.Required("Subscriptions", in.Subscriptions, inside),
		input.Required("InstallPlans", in.InstallPlans, inside),
		olmcore.ValidateList("ConfigMaps", in.ConfigMaps, inside),
		olmcore.ValidateList("OtherPlans", in.OtherPlans),
		in.Config.Validate(),
	)
}
