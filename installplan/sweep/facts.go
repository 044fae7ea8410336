// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// facts contains the indexed objects of an Input. It is read-only after observe has returned it.
type facts struct {
	in *Input // as the caller passed it
	// subscriptions and plans are sorted by name.
	subscriptions []*v1alpha1.Subscription
	plans         []plan
	// byLabel contains the Subscriptions by the component label of their package.
	byLabel map[string][]*v1alpha1.Subscription
	steps   map[types.UID]StepObjects // by plan
}

// plan is an InstallPlan and the Subscriptions that are related to it, sorted by name.
type plan struct {
	*v1alpha1.InstallPlan
	subscriptions []*v1alpha1.Subscription
}

// observe returns the facts of an Input.
func observe(in *Input) *facts {
	f := &facts{
		in: in, subscriptions: inputs.ByName(in.Subscriptions.Items), plans: make([]plan, 0, len(in.InstallPlans.Items)),
		byLabel: map[string][]*v1alpha1.Subscription{}, steps: make(map[types.UID]StepObjects, len(in.Steps)),
	}
	ties := relation.NewTies(f.subscriptions)
	for _, p := range inputs.ByName(in.InstallPlans.Items) {
		f.plans = append(f.plans, plan{p, ties.Subscriptions(p)})
	}
	for _, s := range f.subscriptions {
		if key, err := olmcore.ComponentLabelKey(relation.PackageOf(s), in.Namespace); err == nil {
			f.byLabel[key] = append(f.byLabel[key], s)
		}
	}
	for _, s := range in.Steps {
		f.steps[s.InstallPlan] = s
	}
	return f
}

// plan returns the plan with a name, or nil.
func (f *facts) plan(name string) *v1alpha1.InstallPlan {
	i, found := slices.BinarySearchFunc(f.plans, name, func(p plan, name string) int { return strings.Compare(p.Name, name) })
	if !found {
		return nil
	}
	return f.plans[i].InstallPlan
}

// isActive reports whether the plan has steps or lookups, and is not finished or being deleted.
func (p plan) isActive() bool {
	hasContent := len(p.Status.Plan)+len(p.Status.BundleLookups) > 0
	return p.DeletionTimestamp == nil && hasContent && !relation.Terminal(p.InstallPlan)
}

// neededBy returns the first Subscription that needs the plan, or nil.
func (p plan) neededBy() *v1alpha1.Subscription {
	for _, s := range p.subscriptions {
		if relation.Needs(s, p.InstallPlan) {
			return s
		}
	}
	return nil
}
