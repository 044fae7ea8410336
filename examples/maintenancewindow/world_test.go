// SPDX-License-Identifier: Apache-2.0

package maintenancewindow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/examples/maintenancewindow"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/chaos"
	"github.com/olmcore/olm/fake/gen/walk"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// definition returns the CustomResourceDefinition.
func definition(t require.TestingT) []olmcore.Object {
	f, err := os.Open("config/crd.yaml")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	read, err := decode.Read(f.Name(), f)
	require.NoError(t, err)
	objects, err := decode.Distinct(read)
	require.NoError(t, err)
	return objects
}

// world is all of OLM with two managers in which the controller runs, and two windows: in the first ten minutes of each
// half hour for two tenants, and in the twenty after a quarter past for two others.
type world struct {
	*chaos.History
	approvals, held int
}

func newWorld(t require.TestingT, s chaos.Setting) *world {
	w := &world{}
	w.History = chaos.New(chaos.Options{
		Setting: s,
		Objects: append(definition(t), named("halves", spec{"schedule": "0,30 * * * *", "duration": "10m", "namespaces": []any{"ops", "db"}}),
			named("quarters", spec{"schedule": "15 * * * *", "timeZone": "Europe/Berlin", "duration": "20m", "namespaces": []any{"operators", "platform"}})),
		Controllers: func() []controller.Controller { return []controller.Controller{maintenancewindow.Controller()} },
		AfterAction: w.afterAction,
		Steps: []chaos.Step{
			{Name: "a person edits a plan", Weight: 20, Do: editPlan},
			{Name: "nothing goes wrong for a while", Weight: 60, Do: func(h *chaos.History, c chaos.Choices) { _ = h.RunFor(time.Duration(c.IntN(25)) * time.Minute) }},
			{Name: "a person approves what is held", Weight: 2, Do: func(h *chaos.History, _ chaos.Choices) { approveHeld(h) }},
		},
	})
	return w
}

func named(name string, s spec) olmcore.Object {
	u := windowOf(s)
	u.SetName(name)
	u.SetUID("")
	u.SetResourceVersion("")
	return u
}

// afterAction checks each approval of the controller by rules that are written independently of it.
func (w *world) afterAction(e controller.Event) error {
	if s, is := e.Action.(olmcore.UpdateStatus); is && e.Controller == "maintenancewindow" && strings.Contains(fmt.Sprint(s.After), maintenancewindow.ReasonGainsPermissions) {
		w.held++
	}
	update, is := e.Action.(olmcore.Update)
	if !is || e.Controller != "maintenancewindow" || e.Err != nil {
		return nil
	}
	w.approvals++
	p := update.Before.(*v1alpha1.InstallPlan)
	minute, inHalves := e.At.Minute(), p.Namespace == "ops" || p.Namespace == "db"
	switch {
	case !slices.Contains(chaos.Tenants(), p.Namespace):
		return fmt.Errorf("approved %s/%s, which no window is for", p.Namespace, p.Name)
	case inHalves && minute%30 >= 10, !inHalves && (minute < 15 || minute >= 35):
		return fmt.Errorf("approved %s/%s outside of its window, at %s", p.Namespace, p.Name, e.At)
	case update.Target.ResourceVersion == "" || update.Target.UID != p.UID:
		return fmt.Errorf("approved %s/%s, whatever it had become", p.Namespace, p.Name)
	case !w.allows() && gainsPods(w.Cluster, p):
		return fmt.Errorf("approved %s/%s, which gains permissions: %v", p.Namespace, p.Name, p.Spec.ClusterServiceVersionNames)
	}
	return nil
}

// stored returns a window as the cluster has it.
func stored(h *chaos.History, name string) *unstructured.Unstructured {
	o, err := h.Cluster.Get(context.Background(), maintenancewindow.Kind, "", name)
	if err != nil {
		panic(err)
	}
	return o.DeepCopyObject().(*unstructured.Unstructured)
}

func (w *world) allows() bool {
	o := stored(w.History, "halves")
	allows, _, _ := unstructured.NestedBool(o.Object, "spec", "allowPermissions")
	return allows
}

// gainsPods reports whether a plan takes beta, which may list Pods from its third version on, from an older version
// there.
func gainsPods(c *fake.Cluster, p *v1alpha1.InstallPlan) bool {
	for _, name := range p.Spec.ClusterServiceVersionNames {
		if version, is := betaVersion(name); is && version >= 3 {
			return slices.ContainsFunc(c.Objects(), func(o olmcore.Object) bool {
				csv, is := o.(*v1alpha1.ClusterServiceVersion)
				old, isBeta := betaVersion(o.GetName())
				return is && isBeta && old < 3 && o.GetNamespace() == p.Namespace && !csv.IsCopied()
			})
		}
	}
	return false
}

func betaVersion(name string) (int, bool) {
	text, is := strings.CutPrefix(name, "beta.v")
	version, _ := strconv.Atoi(strings.TrimSuffix(text, ".0.0"))
	return version, is
}

func plans(h *chaos.History) (all []*v1alpha1.InstallPlan) {
	for _, o := range h.Cluster.Objects() {
		if p, is := o.(*v1alpha1.InstallPlan); is {
			all = append(all, p)
		}
	}
	return all
}

// editPlan changes a plan between what a manager saw of it and its approval.
func editPlan(h *chaos.History, c chaos.Choices) {
	if all := plans(h); len(all) > 0 {
		p := all[c.IntN(len(all))]
		_ = fake.Edit(h.Cluster, p.Namespace, p.Name, func(p *v1alpha1.InstallPlan) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, "example.com/edited", fmt.Sprint(c.IntN(100)))
		})
	}
}

func approveHeld(h *chaos.History) {
	for _, window := range []string{"halves", "quarters"} {
		o := stored(h, window)
		waiting, _, _ := unstructured.NestedSlice(o.Object, "status", "waiting")
		for _, entry := range waiting {
			if w := entry.(map[string]any); w["reason"] == maintenancewindow.ReasonGainsPermissions {
				_ = fake.Edit(h.Cluster, w["namespace"].(string), w["name"].(string), func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })
			}
		}
	}
}

// end lets an administrator allow permissions, so that nothing is held any more, and all heal: everything is approved
// at last and installed, and then nothing is written any more.
func (w *world) end(t require.TestingT) {
	for _, window := range []string{"halves", "quarters"} {
		o := stored(w.History, window)
		require.NoError(t, unstructured.SetNestedField(o.Object, true, "spec", "allowPermissions"))
		require.NoError(t, w.Cluster.Update(o))
	}
	require.NoError(t, w.Heal())
	if w.Deletes {
		return // plans may be left that nothing follows
	}
	for _, p := range plans(w.History) {
		if slices.Contains(chaos.Tenants(), p.Namespace) {
			require.NotEqual(t, v1alpha1.InstallPlanPhaseRequiresApproval, p.Status.Phase, "%s/%s waits at last", p.Namespace, p.Name)
		}
	}
}

// TestTheWholeWorld: in any history nothing is approved outside of its window, nothing that gains permissions before
// that is allowed, and all is approved in the end.
func TestTheWholeWorld(t *testing.T) {
	approvals, held := 0, 0
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, chaos.Setting{Deletes: seed%3 == 1, Attacks: seed%2 == 0, Spoils: seed%3 == 2, Sweeps: true})
		steps := chaos.Steps(w.Options)
		for i, s := range steps {
			if s.Name == "publish a version" || s.Name == "subscribe" {
				steps[i].Weight *= 8
			}
		}
		for range 300 {
			require.NoError(t, w.Do(chaos.Draw(steps, random), random), "seed %d", seed)
		}
		w.end(t)
		approvals, held = approvals+w.approvals, held+w.held
	}
	t.Log(approvals, "approvals,", held, "held")
	require.NotZero(t, approvals)
	require.NotZero(t, held)
}

// TestTheWorldThatRapidChooses: the same, with histories that rapid makes shorter when they fail.
func TestTheWorldThatRapidChooses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, chaos.Setting{Attacks: rapid.Bool().Draw(t, "attacks")})
		require.NoError(t, walk.Through(t, w.History, 60))
		w.end(t)
	})
}
