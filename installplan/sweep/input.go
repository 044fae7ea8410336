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

// Input is everything that Reconcile looks at: one snapshot of a namespace. Gather fills all but Now, Lookups and
// Checkpoint.
type Input struct {
	// Now and Namespace are required.
	Now       time.Time
	Namespace string
	// Namespaces is the object of that name, if it exists: nothing is swept while it is being deleted, or may be.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// Subscriptions and InstallPlans of the namespace, all of them. Their reads must have completed.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	InstallPlans  olmcore.Observed[*v1alpha1.InstallPlan]
	// Steps are the objects of the steps of plans that are Complete and that a Subscription refers to. Plans without an
	// entry are not looked into.
	Steps []StepObjects
	// ConfigMaps of the namespace that bundles were unpacked into.
	ConfigMaps olmcore.Observed[*corev1.ConfigMap]
	// OtherPlans are the InstallPlans of all other namespaces that need one of ConfigMaps, of which none is deleted where
	// these were not read; others change nothing. Needed, and gathered, only with ConfigMaps.
	OtherPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// Lookups are the bundles that the caller is unpacking, for any namespace.
	Lookups []v1alpha1.BundleLookup
	Config  installplan.Config
	// Checkpoint is Outcome.Checkpoint of an earlier call for this namespace; nil is always right.
	Checkpoint *olmcore.Checkpoint
}

// StepObjects are the objects of one plan's steps that exist.
type StepObjects struct {
	// InstallPlan is the plan's UID.
	InstallPlan types.UID
	Objects     []olmcore.Object
	// Unread is a kind of object that was not read, zero for none: what is missing of the plan is unknown then.
	Unread schema.GroupVersionKind
}

// Outcome is what Reconcile asks for and says.
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
