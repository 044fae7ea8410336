// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
)

// Input is all that Of looks at. preview.GatherNamespace reads the same: see From.
type Input struct {
	// Now is the instant of the advice, Namespace and Subscription what it is about. Required.
	Now                     time.Time
	Namespace, Subscription string
	// To is the ClusterServiceVersion to go back to. Empty: the one before or, of a way that was begun, the one it leads
	// to.
	To string
	// Objects are what was observed, NotRead the kinds that could not be read.
	Objects []olmcore.Object
	NotRead []string
	// Options are those of the controllers. A version that is gone comes back by Options.Resolve alone.
	Options controllers.Options
	// CustomResources is the judgement of custom resources by schemas that the way back brings: the answer to
	// Advice.SchemaChanges.
	CustomResources olmcore.Observed[installplan.ResourceVerdict]
	// AcceptLoss: the way is told although it loses something.
	AcceptLoss bool
}

// From returns the Input for a Subscription of the namespace that was gathered.
func From(in preview.Input, subscription, to string) Input {
	return Input{
		Now: in.Now, Namespace: in.Plan.Namespace, Subscription: subscription, To: to,
		Objects: in.Objects, NotRead: in.NotRead, Options: in.Options, CustomResources: in.CustomResources,
	}
}

func (in *Input) validate() error {
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.Namespace == "":
		return &olmcore.InputError{Field: "Namespace", Problem: "is empty"}
	case in.Subscription == "":
		return &olmcore.InputError{Field: "Subscription", Problem: "is empty"}
	}
	return in.Options.InstallPlan.Validate()
}

// world is what decides of a state of the namespace.
type world struct {
	sub   *v1alpha1.Subscription
	csvs  map[string]*v1alpha1.ClusterServiceVersion // without copies
	plans map[string]*v1alpha1.InstallPlan
	// others are the versions that other Subscriptions have.
	others map[string]bool
}

func worldOf[S ~map[olmcore.Key]olmcore.Object](state S, namespace, subscription string) (w world, err error) {
	w = world{csvs: map[string]*v1alpha1.ClusterServiceVersion{}, plans: map[string]*v1alpha1.InstallPlan{}, others: map[string]bool{}}
	for key, o := range state {
		if key.Namespace != namespace {
			continue
		}
		switch o := o.(type) {
		case *v1alpha1.Subscription:
			if o.Name == subscription {
				w.sub = o
			} else {
				w.others[o.Status.InstalledCSV], w.others[o.Status.CurrentCSV] = true, true
			}
		case *v1alpha1.ClusterServiceVersion:
			if !o.IsCopied() {
				w.csvs[o.Name] = o
			}
		case *v1alpha1.InstallPlan:
			w.plans[o.Name] = o
		}
	}
	if w.sub == nil || w.sub.Spec == nil {
		return w, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "subscriptions"}, subscription)
	}
	return w, nil
}

// line are the versions of the Subscription that exist, newest first: what it has, and what spec.replaces connects with
// it. A version that another Subscription has is that one's, whatever it says to replace.
func (w world) line(to string) []*v1alpha1.ClusterServiceVersion {
	names := map[string]bool{to: true, w.sub.Status.InstalledCSV: true, w.sub.Status.CurrentCSV: true}
	for again := true; again; {
		again = false
		for name, c := range w.csvs {
			if !names[name] && c.Spec.Replaces != "" && names[c.Spec.Replaces] || names[name] && c.Spec.Replaces != "" && !names[c.Spec.Replaces] {
				names[name], names[c.Spec.Replaces], again = true, true, true
			}
		}
	}
	var all []*v1alpha1.ClusterServiceVersion
	for name, c := range w.csvs {
		if names[name] && !w.others[name] {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.ClusterServiceVersion) int {
		return cmp.Or(w.depth(b)-w.depth(a), strings.Compare(a.Name, b.Name))
	})
	return all
}

// depth is how many versions that exist a version follows.
func (w world) depth(c *v1alpha1.ClusterServiceVersion) (n int) {
	for seen := map[string]bool{}; c != nil && !seen[c.Name]; c = w.csvs[c.Spec.Replaces] {
		seen[c.Name] = true
		n++
	}
	return n
}

// isBefore reports whether a version of a name comes before another one.
func (w world) isBefore(name string, c *v1alpha1.ClusterServiceVersion) bool {
	for seen := map[string]bool{}; c != nil && !seen[c.Name]; c = w.csvs[c.Spec.Replaces] {
		seen[c.Name] = true
		if c.Spec.Replaces == name {
			return true
		}
	}
	return false
}

// head is the version that the Subscription has come to, or is on its way to; nil when none exists.
func (w world) head() *v1alpha1.ClusterServiceVersion {
	if line := w.line(""); len(line) > 0 {
		return line[0]
	}
	return nil
}
