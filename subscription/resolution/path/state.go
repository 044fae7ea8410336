// SPDX-License-Identifier: Apache-2.0

package path

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	opver "github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// state is a namespace between two hops. It is not changed.
type state struct{ in resolution.Input }

func (s state) subscription(name string) *v1alpha1.Subscription {
	for _, sub := range s.in.Subscriptions {
		if sub != nil && sub.Spec != nil && sub.Namespace == s.in.Namespace && sub.Name == name {
			return sub
		}
	}
	return nil
}

// key tells states apart: by what each Subscription has, and by what is installed.
func (s state) key() string {
	var parts []string
	for _, sub := range s.in.Subscriptions {
		if sub != nil && sub.Spec != nil && sub.Namespace == s.in.Namespace {
			parts = append(parts, "s/"+sub.Name+"/"+sub.Status.InstalledCSV+"/"+sub.Status.CurrentCSV)
		}
	}
	for _, csv := range s.in.CSVs {
		if csv != nil && csv.Namespace == s.in.Namespace {
			parts = append(parts, "c/"+csv.Name)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// after returns the namespace once everything that a resolution asks for is done: its operators have succeeded, what
// they replace is gone, Subscriptions for dependencies are there. moved is false when it asks for nothing.
func (s state) after(res *resolution.Result) (next state, hop Hop, moved bool) {
	next = s
	next.in.Subscriptions, next.in.CSVs, next.in.InFlight = slices.Clone(s.in.Subscriptions), slices.Clone(s.in.CSVs), nil
	for i := range res.Operators {
		op := &res.Operators[i]
		move := Move{
			To: op.Name, Version: op.Version, Package: op.Package, Channel: op.Channel, Catalog: op.Catalog, Subscriptions: op.For,
			RequiredBy: op.RequiredBy, Deprecations: deprecations(contentOf(&s.in, op.Catalog), op),
		}
		gone := []string{op.Name}
		for _, t := range res.Targets {
			if t.Target == op.Name && t.Current != "" && slices.Contains(op.For, t.Subscription) {
				move.From = t.Current
				gone = append(gone, t.Current)
			}
		}
		next.in.CSVs = slices.DeleteFunc(next.in.CSVs, func(csv *v1alpha1.ClusterServiceVersion) bool {
			return csv != nil && csv.Namespace == s.in.Namespace && slices.Contains(gone, csv.Name)
		})
		next.in.CSVs = append(next.in.CSVs, installed(s.in.Namespace, op))
		hop.Moves = append(hop.Moves, move)
	}
	for i, sub := range next.in.Subscriptions {
		if sub == nil || sub.Spec == nil || sub.Namespace != s.in.Namespace {
			continue
		}
		t := res.Standing(sub.Name).Target
		if t.Target == "" || t.Target == sub.Status.InstalledCSV && t.Target == sub.Status.CurrentCSV {
			continue
		}
		hop.Approval = hop.Approval || t.Target != t.Current && isManual(sub)
		next.in.Subscriptions[i] = sub.DeepCopy()
		next.in.Subscriptions[i].Status.CurrentCSV, next.in.Subscriptions[i].Status.InstalledCSV = t.Target, t.Target
	}
	for _, generated := range res.Generated {
		sub := generated.DeepCopy()
		sub.CreationTimestamp = youngest(s.in.Subscriptions)
		sub.Status.CurrentCSV, sub.Status.InstalledCSV = sub.Spec.StartingCSV, sub.Spec.StartingCSV
		next.in.Subscriptions = append(next.in.Subscriptions, sub)
	}
	return next, hop, len(hop.Moves) > 0
}

// youngest is a time after that of all Subscriptions: who is asked first depends on it.
func youngest(subscriptions []*v1alpha1.Subscription) metav1.Time {
	var last metav1.Time
	for _, s := range subscriptions {
		if s != nil && last.Before(&s.CreationTimestamp) {
			last = s.CreationTimestamp
		}
	}
	return metav1.NewTime(last.Add(time.Second))
}

// installed is what of a bundle's ClusterServiceVersion a resolution looks at, once it has succeeded.
func installed(namespace string, op *olmcore.Operator) *v1alpha1.ClusterServiceVersion {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = namespace, op.Name
	properties, err := json.Marshal(map[string]any{"properties": op.Bundle.Properties})
	if err == nil { // raw JSON that was read from JSON
		csv.Annotations = map[string]string{content.PropertiesAnnotation: string(properties)}
	}
	if version, err := semver.ParseTolerant(op.Version); err == nil {
		csv.Spec.Version = opver.OperatorVersion{Version: version}
	}
	csv.Spec.Replaces = op.Replaces
	csv.Status.Phase = v1alpha1.CSVPhaseSucceeded
	return csv
}
