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
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// state is a namespace between two hops, without objects that are not of it. It is not changed.
type state struct{ resolution.Input }

func newState(in resolution.Input) state {
	in.Subscriptions = slices.DeleteFunc(slices.Clone(in.Subscriptions), func(s *v1alpha1.Subscription) bool {
		return s == nil || s.Spec == nil || s.Namespace != in.Namespace
	})
	in.CSVs = slices.DeleteFunc(slices.Clone(in.CSVs), func(c *v1alpha1.ClusterServiceVersion) bool { return c == nil || c.Namespace != in.Namespace })
	return state{in}
}

func (s state) subscription(name string) *v1alpha1.Subscription {
	for _, sub := range s.Subscriptions {
		if sub.Name == name {
			return sub
		}
	}
	return nil
}

// catalog returns the content of a catalog, nil when there is none.
func (s state) catalog(key types.NamespacedName) *resolution.Catalog {
	for i := range s.Catalogs {
		if s.Catalogs[i].Key == key {
			return s.Catalogs[i].Content
		}
	}
	return nil
}

// deprecations returns what a catalog says about a bundle that is installed.
func (s state) deprecations(op *olmcore.Operator) (list []string) {
	for _, d := range s.catalog(op.Catalog).Deprecations(op.Package) {
		if (d.Channel == "" || d.Channel == op.Channel) && (d.Bundle == "" || d.Bundle == op.Name) {
			list = append(list, d.Message)
		}
	}
	return list
}

// key tells states apart: by what each Subscription has, and by what is installed.
func (s state) key() string {
	var parts []string
	for _, sub := range s.Subscriptions {
		parts = append(parts, "s/"+sub.Name+"/"+sub.Status.InstalledCSV+"/"+sub.Status.CurrentCSV)
	}
	for _, csv := range s.CSVs {
		parts = append(parts, "c/"+csv.Name)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// after returns the namespace once everything that a resolution asks for is done: its operators have succeeded, what
// they replace is gone, Subscriptions for dependencies are there. The hop has no moves when it asks for nothing.
func (s state) after(res *resolution.Result) (next state, hop Hop) {
	next = s
	next.Subscriptions, next.CSVs, next.InFlight = slices.Clone(s.Subscriptions), slices.Clone(s.CSVs), nil
	for i := range res.Operators {
		op := &res.Operators[i]
		move := Move{
			To: op.Name, Version: op.Version, Package: op.Package, Channel: op.Channel, Catalog: op.Catalog, Subscriptions: op.For,
			RequiredBy: op.RequiredBy, Deprecations: s.deprecations(op),
		}
		gone := []string{op.Name}
		for _, t := range res.Targets {
			if t.Current != "" && slices.Contains(op.For, t.Subscription) {
				move.From = t.Current
				gone = append(gone, t.Current)
			}
		}
		next.CSVs = slices.DeleteFunc(next.CSVs, func(csv *v1alpha1.ClusterServiceVersion) bool { return slices.Contains(gone, csv.Name) })
		next.CSVs = append(next.CSVs, installed(s.Namespace, op))
		hop.Moves = append(hop.Moves, move)
	}
	var youngest metav1.Time
	for i, sub := range s.Subscriptions {
		if youngest.Before(&sub.CreationTimestamp) {
			youngest = sub.CreationTimestamp
		}
		t := res.Standing(sub.Name).Target
		if t.Target == "" {
			continue
		}
		hop.Approval = hop.Approval || t.Target != t.Current && sub.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
		next.Subscriptions[i] = sub.DeepCopy()
		next.Subscriptions[i].Status.CurrentCSV, next.Subscriptions[i].Status.InstalledCSV = t.Target, t.Target
	}
	for _, generated := range res.Generated {
		sub := generated.DeepCopy()
		sub.CreationTimestamp = metav1.NewTime(youngest.Add(time.Second)) // who is asked first depends on it
		sub.Status.CurrentCSV, sub.Status.InstalledCSV = sub.Spec.StartingCSV, sub.Spec.StartingCSV
		next.Subscriptions = append(next.Subscriptions, sub)
	}
	return next, hop
}

// installed is what of a bundle's ClusterServiceVersion a resolution looks at, once it has succeeded.
func installed(namespace string, op *olmcore.Operator) *v1alpha1.ClusterServiceVersion {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = namespace, op.Name
	properties, err := json.Marshal(map[string]any{"properties": op.Bundle.Properties})
	if err == nil { // raw JSON that was read from JSON
		csv.Annotations = map[string]string{olmcore.AnnotationProperties: string(properties)}
	}
	if version, err := semver.ParseTolerant(op.Version); err == nil {
		csv.Spec.Version = opver.OperatorVersion{Version: version}
	}
	csv.Spec.Replaces = op.Replaces
	csv.Status.Phase = v1alpha1.CSVPhaseSucceeded
	return csv
}
