// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/olmcore"
)

func empty[T olmcore.Object]() T {
	var zero T
	return reflect.New(reflect.TypeOf(zero).Elem()).Interface().(T)
}

// afterwards is the context of what is done when the story is over.
func (s *story) afterwards() context.Context { return context.WithoutCancel(s.Context()) }

// live returns an object of a kind without a Go type here; an empty one when there is none.
func live(s *story, gvk schema.GroupVersionKind, namespace, name string) olmcore.Object {
	o, err := world.user.Get(s.Context(), gvk, s.text(namespace), s.text(name))
	if olmcore.Classify(err) == olmcore.Gone {
		return &unstructured.Unstructured{}
	}
	require.NoError(s, err)
	return o
}

// subscription returns a Subscription of the story's namespace.
func (s *story) subscription(name string) *v1alpha1.Subscription {
	return get[*v1alpha1.Subscription](s, name)
}

// plan returns the InstallPlan that a Subscription refers to.
func (s *story) plan(subscription string) *v1alpha1.InstallPlan {
	ref := s.subscription(subscription).Status.InstallPlanRef
	if ref == nil {
		return &v1alpha1.InstallPlan{}
	}
	return get[*v1alpha1.InstallPlan](s, ref.Name)
}

// csv returns a ClusterServiceVersion of the story's namespace.
func (s *story) csv(name string) *v1alpha1.ClusterServiceVersion {
	return get[*v1alpha1.ClusterServiceVersion](s, name)
}

// installed waits until a Subscription is at a version, and this has succeeded.
func (s *story) installed(subscription, csv string) {
	s.Helper()
	eventually(s, subscription+" is at "+csv, func() string {
		status := s.subscription(subscription).Status
		return fmt.Sprintf("%s %s, %s %s", status.State, status.InstalledCSV, csv, s.csv(csv).Status.Phase)
	}, fmt.Sprintf("%s %s, %s %s", v1alpha1.SubscriptionStateAtLatest, csv, csv, v1alpha1.CSVPhaseSucceeded))
}

// planned waits until the plan of a Subscription is for these versions and in a phase.
func (s *story) planned(subscription string, phase v1alpha1.InstallPlanPhase, versions ...string) {
	s.Helper()
	slices.Sort(versions)
	eventually(s, fmt.Sprintf("the plan for %s is %s", strings.Join(versions, ", "), phase), func() string {
		p := s.plan(subscription)
		return fmt.Sprint(p.Status.Phase, slices.Sorted(slices.Values(p.Spec.ClusterServiceVersionNames)))
	}, fmt.Sprint(phase, versions))
}

// approve approves the plan of a Subscription.
func (s *story) approve(subscription string) {
	edit(s, s.plan(subscription).Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })
}

// withdraw takes the approval back.
func (s *story) withdraw(subscription string) {
	edit(s, s.plan(subscription).Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = false })
}

// says waits until an object has a condition: "STATUS REASON: MESSAGE", with less where there is less; empty for none.
func says[T olmcore.Object](s *story, name, condition, want string) {
	s.Helper()
	eventually(s, fmt.Sprintf("%s says %s %s", name, condition, want), func() string { return conditionOf(get[T](s, name), condition) }, want)
}

// conditionOf returns a condition of any object: "STATUS REASON: MESSAGE", with less where there is less.
func conditionOf(o olmcore.Object, kind string) string {
	var text string
	for _, c := range conditionsOf(o) {
		if c["type"] == kind {
			word := func(key string) string { return strings.TrimSpace(fmt.Sprint(cmp.Or(c[key], any("")))) }
			text = strings.TrimSpace(word("status") + " " + word("reason"))
			if message := word("message"); message != "" {
				text += ": " + message
			}
		}
	}
	return text
}

func conditionsOf(o olmcore.Object) (conditions []map[string]any) {
	m, err := olmcore.ToMap(o)
	if err != nil {
		panic(err)
	}
	status, _ := m["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		conditions = append(conditions, c.(map[string]any))
	}
	return conditions
}

// transitions returns the states that an object went through, as the manager reported them: of a Subscription "State"
// or "InstallPlan", of a ClusterServiceVersion or an InstallPlan "Phase".
func (s *story) transitions(kind, name, machine string) (states []string) {
	reports, _ := world.of(s.ns)
	for _, r := range reports {
		for _, t := range r.Result.Transitions {
			if t.Target.Kind == kind && t.Target.Name == name && t.Type == machine {
				states = append(states, t.To)
			}
		}
	}
	return slices.Compact(states) // the reason may change and the state stay
}

// goesThrough waits until the manager has reported these states of an object: it does so after the last one is written.
func (s *story) goesThrough(kind, name, machine string, want ...string) {
	s.Helper()
	eventually(s, name+" goes through its states", func() []string { return s.transitions(kind, name, machine) }, want)
}

// steps returns what an InstallPlan does: "KIND NAME: STATUS" in its order.
func steps(p *v1alpha1.InstallPlan) (lines []string) {
	for _, step := range p.Status.Plan {
		lines = append(lines, fmt.Sprintf("%s %s: %s", step.Resource.Kind, step.Resource.Name, step.Status))
	}
	return lines
}

// tellWhatIs shows the story's objects, and what the manager did, when the story failed.
func tellWhatIs(s *story) {
	if !s.Failed() {
		return
	}
	show(s, listed[*v1alpha1.CatalogSource](s), listed[*operatorsv1.OperatorGroup](s), listed[*v1alpha1.Subscription](s),
		listed[*v1alpha1.InstallPlan](s), listed[*v1alpha1.ClusterServiceVersion](s))
	reports, _ := world.of(s.ns)
	for _, r := range reports[max(0, len(reports)-60):] {
		s.Log(strings.TrimSpace(r.String()))
	}
}

// maxShown bounds what is shown of a status.
const maxShown = 3000

func show(s *story, kinds ...[]olmcore.Object) {
	for _, o := range slices.Concat(kinds...) {
		m, err := olmcore.ToMap(o)
		require.NoError(s, err)
		text, err := yaml.Marshal(m["status"])
		require.NoError(s, err)
		s.Logf("%s\n%s", olmcore.KeyOf(o), text[:min(len(text), maxShown)])
	}
}

func listed[T olmcore.Object](s *story) (objects []olmcore.Object) {
	all, err := olmcore.List[T](s.afterwards(), world.user, s.ns, nil)
	if err != nil {
		s.Log(err)
	}
	for _, o := range all {
		objects = append(objects, o)
	}
	return objects
}
