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

// state is the Input of the resolution between two hops. It contains only objects of its namespace, and is read-only.
type state struct{ in resolution.Input }

func newState(in resolution.Input) state {
	in.Subscriptions = slices.DeleteFunc(slices.Clone(in.Subscriptions), func(s *v1alpha1.Subscription) bool {
		return s == nil || s.Spec == nil || s.Namespace != in.Namespace
	})
	in.CSVs = slices.DeleteFunc(slices.Clone(in.CSVs), func(c *v1alpha1.ClusterServiceVersion) bool {
		return c == nil || c.Namespace != in.Namespace
	})
	return state{in}
}

func (s state) subscription(name string) *v1alpha1.Subscription {
	for _, sub := range s.in.Subscriptions {
		if sub.Name == name {
			return sub
		}
	}
	return nil
}

// catalog returns the content of a catalog. It is nil if the Input has none.
func (s state) catalog(key types.NamespacedName) *resolution.Catalog {
	for i := range s.in.Catalogs {
		if s.in.Catalogs[i].Key == key {
			return s.in.Catalogs[i].Content
		}
	}
	return nil
}

// deprecations returns the deprecation messages for a bundle, its channel and its package.
func (s state) deprecations(op *olmcore.Operator) (list []string) {
	for _, d := range s.catalog(op.Catalog).Deprecations(op.Package) {
		if (d.Channel == "" || d.Channel == op.Channel) && (d.Bundle == "" || d.Bundle == op.Name) {
			list = append(list, d.Message)
		}
	}
	return list
}

// key identifies a state by the ClusterServiceVersions of each Subscription and of the namespace.
func (s state) key() string {
	var parts []string
	for _, sub := range s.in.Subscriptions {
		parts = append(parts, "s/"+sub.Name+"/"+sub.Status.InstalledCSV+"/"+sub.Status.CurrentCSV)
	}
	for _, csv := range s.in.CSVs {
		parts = append(parts, "c/"+csv.Name)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// after returns the state after a hop, and the hop. In the new state, the operators of the resolution have succeeded,
// the versions that they replace are deleted, and the Subscriptions for dependencies exist. The hop has no moves if the
// resolution contains no operators.
func (s state) after(res *resolution.Result) (state, Hop) {
	var hop Hop
	in := s.in
	in.Subscriptions = slices.Clone(in.Subscriptions)
	in.CSVs = slices.Clone(in.CSVs)
	in.InFlight = nil
	for i := range res.Operators {
		op := &res.Operators[i]
		move := Move{
			To: op.Name, Version: op.Version, Package: op.Package, Channel: op.Channel, Catalog: op.Catalog, Subscriptions: op.For,
			RequiredBy: op.RequiredBy, Deprecations: s.deprecations(op),
		}
		replaced := []string{op.Name}
		for _, t := range res.Targets {
			if t.Current != "" && slices.Contains(op.For, t.Subscription) {
				move.From = t.Current
				replaced = append(replaced, t.Current)
			}
		}
		in.CSVs = slices.DeleteFunc(in.CSVs, func(csv *v1alpha1.ClusterServiceVersion) bool {
			return slices.Contains(replaced, csv.Name)
		})
		in.CSVs = append(in.CSVs, installed(s.in.Namespace, op))
		hop.Moves = append(hop.Moves, move)
	}
	var youngest metav1.Time
	for i, sub := range s.in.Subscriptions {
		if youngest.Before(&sub.CreationTimestamp) {
			youngest = sub.CreationTimestamp
		}
		t := res.Standing(sub.Name).Target
		if t.Target == "" {
			continue
		}
		hop.Approval = hop.Approval || t.Target != t.Current && sub.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
		in.Subscriptions[i] = sub.DeepCopy()
		in.Subscriptions[i].Status.CurrentCSV, in.Subscriptions[i].Status.InstalledCSV = t.Target, t.Target
	}
	for _, generated := range res.Generated {
		sub := generated.DeepCopy()
		sub.CreationTimestamp = metav1.NewTime(youngest.Add(time.Second)) // resolution orders Subscriptions by age
		sub.Status.CurrentCSV, sub.Status.InstalledCSV = sub.Spec.StartingCSV, sub.Spec.StartingCSV
		in.Subscriptions = append(in.Subscriptions, sub)
	}
	return state{in}, hop
}

// installed returns a Succeeded ClusterServiceVersion of a bundle with the fields that a resolution reads.
func installed(namespace string, op *olmcore.Operator) *v1alpha1.ClusterServiceVersion {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = namespace, op.Name
	properties, err := json.Marshal(map[string]any{"properties": op.Bundle.Properties})
	if err == nil { // the properties are valid JSON, so there is no error
		csv.Annotations = map[string]string{olmcore.AnnotationProperties: string(properties)}
	}
	if version, err := semver.ParseTolerant(op.Version); err == nil {
		csv.Spec.Version = opver.OperatorVersion{Version: version}
	}
	csv.Spec.Replaces = op.Replaces
	csv.Status.Phase = v1alpha1.CSVPhaseSucceeded
	return csv
}
