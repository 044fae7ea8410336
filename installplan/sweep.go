// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// SweepInput is everything that Sweep looks at: one snapshot of a namespace.
// GatherSweep fills all but Now and Lookups. nil entries are ignored.
type SweepInput struct {
	// Now and Namespace are required.
	Now       time.Time
	Namespace string
	// Terminating: the namespace is being deleted. Nothing is swept then.
	Terminating bool
	// Subscriptions and InstallPlans of the namespace, all of them.
	Subscriptions []*v1alpha1.Subscription
	InstallPlans  []*v1alpha1.InstallPlan
	// Steps are the objects of the steps of plans that are Complete and that a
	// Subscription refers to. Plans without an entry are not looked into.
	Steps []StepObjects
	// ConfigMaps of the namespace that bundles were unpacked into.
	ConfigMaps []*corev1.ConfigMap
	// OtherPlans are the InstallPlans of all other namespaces, as they may refer to
	// ConfigMaps, of which none goes where these were not read.
	OtherPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// Lookups are the bundles that the caller is unpacking, for any namespace.
	Lookups []v1alpha1.BundleLookup
	// Unread are the kinds that were not read, which leaves something undecided; Sweep
	// names each. May be empty.
	Unread []schema.GroupVersionKind
	Config Config
}

// StepObjects are the objects of one plan's steps that exist.
type StepObjects struct {
	// InstallPlan is the plan's UID.
	InstallPlan               types.UID
	CustomResourceDefinitions []*apiextensionsv1.CustomResourceDefinition
	ClusterServiceVersions    []*v1alpha1.ClusterServiceVersion
	Objects                   []olmcore.Object
}

// Sweep keeps the InstallPlans of one namespace in order. It deletes old plans
// that are done and that nobody refers to, plans that never got their steps, and
// unpacked bundles that no plan of any namespace refers to. It audits how plans
// and Subscriptions relate: each finding is a Diagnostic with a reason of its
// own, and what can be repaired is, with one Update for each object. A plan that
// waits or runs is never deleted. A namespace in order gives the zero Result. The
// error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, gcInstallPlans.
// Differs: OLM looks at neither phases nor references, and only at the first ten
// plans of an unordered list; it audits nothing.
func Sweep(in SweepInput) (olmcore.Result, error) {
	if err := in.prepare(); err != nil || in.Terminating {
		return olmcore.Result{}, err
	}
	if len(in.Subscriptions)+len(in.InstallPlans)+len(in.ConfigMaps)+len(in.Unread) == 0 {
		return olmcore.Result{}, nil
	}
	s := sweep{in: in}
	if slices.Contains(in.Unread, namespaceKind) {
		s.unread()
		return s.result, nil
	}
	s.index()
	s.collect()
	for _, p := range in.InstallPlans {
		if p.DeletionTimestamp == nil && !s.going[p.UID] {
			s.relations(p)
			s.installed(p)
		}
	}
	for _, sub := range in.Subscriptions {
		s.references(sub)
	}
	s.collisions()
	s.bundles()
	s.unread()
	return s.result, nil
}

// unread names the kinds that were not read.
func (s *sweep) unread() {
	for _, kind := range s.in.Unread {
		unknown := "which objects of InstallPlans are gone"
		switch kind.Kind {
		case namespaceKind.Kind:
			unknown = "whether the namespace is being deleted"
		case "ConfigMap":
			unknown = "which unpacked bundles are not needed"
		case v1alpha1.InstallPlanKind:
			unknown = "which unpacked bundles InstallPlans of other namespaces need"
		}
		err := olmcore.NotReadError{Kind: kind, Unknown: unknown}
		s.result.Diagnostics = append(s.result.Diagnostics, olmcore.Diagnostic{
			Severity: olmcore.Info, Reason: ReasonNotRead, Message: err.Error(),
			Target: olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: s.in.Namespace},
		})
	}
}

// prepare checks the input and brings its lists in order.
func (in *SweepInput) prepare() error {
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.Namespace == "":
		return &olmcore.InputError{Field: "Namespace", Problem: "is empty"}
	}
	if err := in.Config.validate(); err != nil {
		return err
	}
	var err error
	if in.Subscriptions, err = only(in.Subscriptions, "Subscriptions", in.Namespace); err != nil {
		return err
	}
	if in.InstallPlans, err = only(in.InstallPlans, "InstallPlans", in.Namespace); err != nil {
		return err
	}
	in.ConfigMaps, err = only(in.ConfigMaps, "ConfigMaps", in.Namespace)
	return err
}

// only returns objects sorted by name, and an error when one is of another
// namespace or named like another.
func only[T interface {
	comparable
	olmcore.Object
}](objects []T, field, namespace string) ([]T, error) {
	objects = sortedByName(objects)
	for i, o := range objects {
		if o.GetNamespace() != namespace {
			return nil, foreign(field, i, o.GetNamespace(), namespace)
		}
		if i > 0 && objects[i-1].GetName() == o.GetName() {
			return nil, repeated(field, i, o)
		}
	}
	return objects, nil
}

// sweep is one call of Sweep.
type sweep struct {
	in     SweepInput
	result olmcore.Result
	going  map[types.UID]bool // the plans that this sweep deletes
	ties   ties               // finds the Subscriptions that a plan has to do with
	// byLabel are the Subscriptions by the component label of their package; nil when
	// they are few.
	byLabel map[string][]*v1alpha1.Subscription
	steps   map[types.UID]int // positions of Steps by the UID of the plan; nil when they are few
}

func (s *sweep) report(severity olmcore.Severity, reason string, target olmcore.Object, format string, args ...any) {
	s.result.Diagnostics = append(s.result.Diagnostics, olmcore.Diagnostic{
		Severity: severity, Reason: reason, Message: fmt.Sprintf(format, args...), Target: olmcore.RefOf(target).Unversioned(),
	})
}

func (s *sweep) do(a olmcore.Action) { s.result.Actions = append(s.result.Actions, a) }

func (s *sweep) index() {
	s.ties = newTies(s.in.Subscriptions)
	if len(s.in.Steps) > fewObjects {
		s.steps = map[types.UID]int{}
		for i := range s.in.Steps {
			if plan := s.in.Steps[i].InstallPlan; s.stepsOf(plan) == nil {
				s.steps[plan] = i
			}
		}
	}
	if len(s.in.Subscriptions) <= fewObjects {
		return
	}
	s.byLabel = map[string][]*v1alpha1.Subscription{}
	for _, sub := range s.in.Subscriptions {
		if key, err := olmcore.ComponentLabelKey(packageOf(sub), s.in.Namespace); err == nil {
			s.byLabel[key] = append(s.byLabel[key], sub)
		}
	}
}

// stepsOf returns the objects of a plan's steps, nil when they were not looked for.
func (s *sweep) stepsOf(plan types.UID) *StepObjects {
	i, found := s.steps[plan]
	if s.steps == nil {
		i = slices.IndexFunc(s.in.Steps, func(o StepObjects) bool { return o.InstallPlan == plan })
		found = i >= 0
	}
	if !found {
		return nil
	}
	return &s.in.Steps[i]
}

// following returns the Subscriptions, and maybe others, that follow the package of a
// component label.
func (s *sweep) following(label string) []*v1alpha1.Subscription {
	if s.byLabel == nil {
		return s.in.Subscriptions
	}
	return s.byLabel[label]
}

// collect deletes old plans, the oldest first.
func (s *sweep) collect() {
	keep := or(s.in.Config.MaxInstallPlans, DefaultMaxInstallPlans)
	limit := or(s.in.Config.MaxDeletesPerSweep, DefaultMaxDeletesPerSweep)
	plans := s.in.InstallPlans
	if len(plans) <= keep && !slices.ContainsFunc(plans, withoutSteps) {
		return
	}
	plans = slices.Clone(plans)
	slices.SortFunc(plans, func(a, b *v1alpha1.InstallPlan) int {
		return cmp.Or(cmp.Compare(a.Spec.Generation, b.Spec.Generation), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			strings.Compare(a.Name, b.Name))
	})
	active := 0
	for i, p := range plans {
		if p.DeletionTimestamp != nil {
			continue
		}
		reason, message := ReasonPlanHistory, "newer plans are kept, and no Subscription refers to this one"
		switch {
		case withoutSteps(p):
			if !s.isOrphan(p) {
				continue
			}
			reason, message = ReasonPlanWithoutStatus, "the plan never got its steps"
		case !terminal(p.Status.Phase):
			active++
			continue
		case i >= len(plans)-keep || s.isReferenced(p):
			continue
		}
		if len(s.going) == limit {
			s.result.Requeue(time.Second)
			continue
		}
		if s.going == nil {
			s.going = map[types.UID]bool{}
		}
		s.going[p.UID] = true
		action := olmcore.DeleteOf(p, olmcore.Cause{Reason: reason, Message: message})
		action.Target = olmcore.RefOf(p)
		s.do(action)
	}
	if active > keep {
		s.result.Diagnostics = append(s.result.Diagnostics, olmcore.Diagnostic{
			Severity: olmcore.Warning, Reason: ReasonTooManyActivePlans,
			Message: fmt.Sprintf("%d InstallPlans of namespace %s wait or run", active, s.in.Namespace),
			Target:  olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: s.in.Namespace},
		})
	}
}

func withoutSteps(p *v1alpha1.InstallPlan) bool {
	return !terminal(p.Status.Phase) && len(p.Status.Plan)+len(p.Status.BundleLookups) == 0
}

// isOrphan reports that a plan without steps will never get any: it is old, and
// nobody refers to it. One that a Subscription refers to is kept: without it the
// Subscription would resolve again, beside the plan that may have its version.
func (s *sweep) isOrphan(p *v1alpha1.InstallPlan) bool {
	if left := p.CreationTimestamp.Add(or(s.in.Config.OrphanGrace, DefaultOrphanGrace)).Sub(s.in.Now); left > 0 {
		s.result.Requeue(left)
		return false
	}
	for _, sub := range s.ties.of(p, s.in.Config) {
		if needs(sub, p) {
			s.report(olmcore.Warning, ReasonPlanWithoutStatus, p, "the plan has no steps, and Subscription %s refers to it", sub.Name)
			return false
		}
	}
	return true
}

func (s *sweep) isReferenced(p *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(s.ties.of(p, s.in.Config), func(sub *v1alpha1.Subscription) bool { return needs(sub, p) })
}

// needs reports whether a Subscription refers to a plan, going by the name or by
// the UID, or is about to.
func needs(sub *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	ref := sub.Status.InstallPlanRef
	if ref == nil {
		return sub.Annotations[AnnotationGeneratedBy] == p.Name
	}
	return ref.Name == p.Name || p.UID != "" && ref.UID == p.UID
}

// isCurrent reports whether a plan is Complete and a Subscription refers to it.
func (x *ties) isCurrent(p *v1alpha1.InstallPlan, config Config) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == v1alpha1.InstallPlanPhaseComplete &&
		slices.ContainsFunc(x.of(p, config), func(sub *v1alpha1.Subscription) bool { return refersTo(sub, p) })
}

// bundles deletes what was unpacked and is not needed.
func (s *sweep) bundles() {
	var old []*corev1.ConfigMap
	var next time.Duration
	for _, cm := range s.in.ConfigMaps {
		if cm.DeletionTimestamp != nil || !holdsBundle(cm) {
			continue
		}
		if left := retained(cm, s.in.Now, s.in.Config); left <= 0 {
			old = append(old, cm)
		} else if next == 0 || left < next {
			next = left
		}
	}
	s.result.Requeue(next)
	if len(old) == 0 || !s.in.OtherPlans.Complete {
		return
	}
	needed := map[types.NamespacedName]bool{}
	for _, plans := range [...][]*v1alpha1.InstallPlan{s.in.InstallPlans, s.in.OtherPlans.Items} {
		for _, p := range plans {
			if p != nil {
				refersToBundles(p, needed)
			}
		}
	}
	lookedUp(s.in.Lookups, needed)
	for _, cm := range old {
		if needed[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}] {
			continue
		}
		s.report(olmcore.Info, ReasonUnpackedBundleUnused, cm, "no InstallPlan refers to it")
		s.do(deleteBundle(cm, ReasonUnpackedBundleUnused, "no InstallPlan refers to it"))
	}
}
