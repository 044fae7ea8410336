// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// TestEveryActionMayBeLostOrRepeated starts in situations with many actions. It checks that the catalog reaches the
// same state if any of the actions is lost or repeated.
func TestEveryActionMayBeLostOrRepeated(t *testing.T) {
	for name, prepare := range map[string]func(*world) error{
		"nothing exists": func(*world) error { return nil },
		"the node is lost": func(w *world) error {
			return after(w, time.Minute, func() error { return w.Node("a").Fail() }, 75*time.Second)
		},
		"the node is gone": func(w *world) error {
			return after(w, time.Minute, func() error { return w.Node("a").Delete() }, 40*time.Second)
		},
		"the node is drained": func(w *world) error { return after(w, time.Minute, func() error { return w.Node("a").Drain() }, 0) },
		"the spec has changed": func(w *world) error {
			return after(w, time.Minute, func() error {
				return fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Image = "quay.io/example/catalog:v2" })
			}, 0)
		},
		"a poll finds newer content": func(w *world) error {
			return after(w, time.Minute, func() error {
				w.Image("quay.io/example/catalog:v1").SetDigest("sha256:" + strings.Repeat("2", 64))
				return fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.UpdateStrategy = polling("15m") })
			}, 15*time.Minute)
		},
		"a poll finds nothing new": func(w *world) error {
			return after(w, time.Minute, func() error {
				return fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.UpdateStrategy = polling("15m") })
			}, 15*time.Minute)
		},
		"the source type has changed": func(w *world) error {
			return after(w, time.Minute, func() error {
				if err := w.Cluster.Create(content()); err != nil {
					return err
				}
				return fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
					cs.Spec.SourceType, cs.Spec.ConfigMap, cs.Spec.Image = v1alpha1.SourceTypeConfigmap, "content", ""
				})
			}, 0)
		},
		"the config map has changed": func(w *world) error {
			if err := w.Cluster.Create(content()); err != nil {
				return err
			}
			if err := fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
				cs.Spec.SourceType, cs.Spec.ConfigMap, cs.Spec.Image = v1alpha1.SourceTypeConfigmap, "content", ""
			}); err != nil {
				return err
			}
			return after(w, time.Minute, func() error {
				return fake.Edit(w.Cluster, "olm", "content", func(cm *corev1.ConfigMap) { cm.Data["packages"] = "other" })
			}, 0)
		},
		"secrets were added and objects damaged": func(w *world) error {
			return after(w, time.Minute, func() error {
				if err := fake.Edit(w.Cluster, "olm", "cool", func(s *corev1.Service) { s.Spec.Selector = nil }); err != nil {
					return err
				}
				return fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Secrets = []string{"pull", "", "pull"} })
			}, 0)
		},
	} {
		for _, replicas := range []int{1, 2} {
			t.Run(name, func(t *testing.T) {
				config := catalog.Config{Replicas: replicas}
				w := invariant.World{
					New: func() (*fake.Cluster, error) {
						w := newWorld(t, config, cool())
						return w.Cluster, prepare(w)
					},
					Controllers: func(*fake.Cluster) []controller.Controller { return []controller.Controller{catalogController(config)} },
					Rounds:      rounds,
					Ignore:      numbers(),
				}
				require.NoError(t, invariant.Settles(w))
				require.NoError(t, invariant.Repeatable(w))
				require.NoError(t, invariant.Resumable(w))
			})
		}
	}
}

// after lets the catalog start, breaks something, and lets time pass without the controller.
func after(w *world, start time.Duration, what func() error, later time.Duration) error {
	if err := w.Driver.RunFor(context.Background(), start); err != nil {
		return err
	}
	if err := what(); err != nil {
		return err
	}
	return w.Cluster.RunFor(later)
}

// numbers returns the fields that differ between attempts to create a Pod: its name, purpose, Node, address and
// token.
func numbers() (all []invariant.Ignore) {
	for _, path := range [][]string{
		{"metadata", "name"}, {"metadata", "uid"}, // it tells the name
		{"metadata", "annotations", "olmcore/replaces"}, {"metadata", "annotations", "olmcore/cause"}, {"metadata", "annotations", "olmcore/purpose"},
		{"metadata", "annotations", "olmcore/kept-pod-number"},
		{"spec", "nodeName"}, {"spec", "affinity"}, {"spec", "topologySpreadConstraints"},
	} {
		all = append(all, invariant.Ignore{Kind: schema.GroupKind{Kind: "Pod"}, Path: path})
	}
	for _, path := range [][]string{{"spec", "volumes", "*", "name"}, {"spec", "initContainers", "*", "volumeMounts", "*", "name"}, {"spec", "containers", "*", "volumeMounts", "*", "name"}} {
		all = append(all, invariant.Ignore{Kind: schema.GroupKind{Kind: "Pod"}, Path: path, Equal: []string{"kube-api-access-*"}})
	}
	catalogSource := schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.CatalogSourceKind}
	for _, ready := range []string{"1/1", "2/2", "3/3"} {
		all = append(all, invariant.Ignore{Kind: catalogSource, Path: []string{"status", "conditions", "*", "message"}, Equal: []string{ready + " registry pods ready: *"}})
	}
	return append(all,
		invariant.Ignore{Kind: schema.GroupKind{Kind: "Pod"}, Path: []string{"metadata", "labels", "catalogsource.operators.coreos.com/update"}, Equal: []string{""}},
		invariant.Ignore{Kind: catalogSource, Path: []string{"metadata", "annotations", "olmcore/kept-pod"}}, // it holds a UID
		// A state that passed while its write was lost is not recorded afterwards.
		invariant.Ignore{Kind: catalogSource, Path: []string{"status", "conditions", "*", "lastTransitionTime"}},
	)
}

// TestLawsHoldForOddInputs checks the laws for inputs that a healthy cluster does not have.
func TestLawsHoldForOddInputs(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, change := range oddInputs {
		t.Run(name, func(t *testing.T) {
			in := invariant.Clone(base)
			change(&in)
			require.NoError(t, invariant.Laws(result, in))
			out, err := catalog.Reconcile(in)
			if err != nil {
				require.ErrorIs(t, err, olmcore.ErrInvalidInput)
				return
			}
			checkSafety(t, in, out, 5)
			checkEdge(t, in)
			checkPromises(t, in, out)
		})
	}
}

// TestRequeueAfterIsLimited checks that RequeueAfter is at least a second and at most 15 minutes.
func TestRequeueAfterIsLimited(t *testing.T) {
	base := converged(t, catalog.Config{NodeUnreachableGrace: time.Hour, StartupFailureThreshold: 900}, cool())
	for left, want := range map[time.Duration]time.Duration{
		time.Nanosecond: time.Second, 400 * time.Millisecond: time.Second, time.Second: time.Second, 1500 * time.Millisecond: 1500 * time.Millisecond,
		14 * time.Minute: 14 * time.Minute, 15*time.Minute + 1: 15 * time.Minute, time.Hour: 15 * time.Minute,
	} {
		in := invariant.Clone(base)
		silence(&in, time.Hour-left)
		out := answer(t, in)
		require.Empty(t, done(out))
		require.Equal(t, want, out.RequeueAfter, "%s", left)
		require.True(t, catalog.Assess(in).NextDeadline.Equal(in.Now.Add(left)), "the deadline itself is told as it is")
	}
}

// TestTimeZonesDoNotMatter checks that the time zones of the times in an Input do not matter.
func TestTimeZonesDoNotMatter(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	zone := time.FixedZone("far away", 9*3600+1800)
	for name, change := range everyCase() {
		in := invariant.Clone(base)
		change(&in)
		want := answer(t, in)
		moved := invariant.Clone(in)
		moveTimes(reflect.ValueOf(&moved).Elem(), zone)
		got := answer(t, moved)
		require.Equal(t, describe(t, want), describe(t, got), name)
	}
}

// moveTimes changes the time zone of every time. The instants stay the same.
func moveTimes(v reflect.Value, zone *time.Location) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			moveTimes(v.Elem(), zone)
		}
	case reflect.Slice:
		for i := range v.Len() {
			moveTimes(v.Index(i), zone)
		}
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			if v.CanSet() && !at.IsZero() {
				v.Set(reflect.ValueOf(at.In(zone)))
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				moveTimes(v.Field(i), zone)
			}
		}
	}
}
