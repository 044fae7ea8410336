// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// history is a namespace in which versions of one operator come and go while
// writes fail, are forbidden, and controllers are down.
type history struct {
	c         *fake.Cluster
	d         *fake.Driver
	template  *v1alpha1.ClusterServiceVersion
	forbidden map[string]bool
	since     time.Time // of the oldest ban
	seen      map[types.UID]*v1alpha1.ClusterServiceVersion
	violation error
}

func newHistory(t *rapid.T) *history {
	c, d := newWorld(csv.Config{})
	base, err := fromFiles("base.yaml", "v1.yaml")
	require.NoError(t, err)
	require.NoError(t, c.Create(base[:3]...))
	require.NoError(t, c.RunFor(time.Second)) // the CRD is established
	h := &history{c: c, d: d, template: base[len(base)-1].(*v1alpha1.ClusterServiceVersion), forbidden: map[string]bool{}, seen: map[types.UID]*v1alpha1.ClusterServiceVersion{}}
	c.Authorize = h.authorize
	return h
}

// authorize sees every write of the controllers: it refuses what is forbidden,
// and remembers a deletion that takes away what a live version needs.
func (h *history) authorize(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
	if h.forbidden[string(verb)+" "+target.Kind] {
		return apierrors.NewForbidden(schema.GroupResource{Group: target.GVK().Group, Resource: target.Kind}, target.Name, errors.New("not you"))
	}
	if verb != olmcore.VerbDelete || target.Kind == "ClusterServiceVersion" {
		return nil
	}
	o, err := h.c.Get(context.Background(), target.GVK(), target.Namespace, target.Name)
	if err != nil || olmcore.RefOf(o).Kind == "" || o.GetUID() != target.UID {
		return nil
	}
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	for _, v := range csvs(h.c) {
		switch {
		case v.DeletionTimestamp != nil:
		case target.Kind == "Cool":
			h.violation = fmt.Errorf("%s was deleted although %s lives", target, v.Name)
		case owner.Kind == "ClusterServiceVersion" && owner.Name == v.Name && owner.Namespace == v.Namespace:
			h.violation = fmt.Errorf("%s was deleted although its owner %s lives", target, v.Name)
		}
	}
	return nil
}

// live returns the versions that nobody deleted, oldest first.
func (h *history) live() []*v1alpha1.ClusterServiceVersion {
	list := slices.DeleteFunc(csvs(h.c), func(v *v1alpha1.ClusterServiceVersion) bool {
		return v.DeletionTimestamp != nil || v.Namespace != "ns"
	})
	slices.SortFunc(list, func(a, b *v1alpha1.ClusterServiceVersion) int { return a.Spec.Version.Compare(b.Spec.Version.Version) })
	return list
}

// bring creates what an InstallPlan would for a version.
func (h *history) bring(t *rapid.T, i int, object bool) {
	v := h.template.DeepCopy()
	v.Name, v.Spec.Version.Major = fmt.Sprintf("cool.v%d", i), uint64(i)
	v.Spec.Cleanup.Enabled = rapid.Bool().Draw(t, "cleanup")
	if i > 0 {
		v.Spec.Replaces = fmt.Sprintf("cool.v%d", i-1)
	}
	objects := needs(v)[1:]
	if object {
		objects = append(objects, v)
	}
	for _, o := range objects {
		if err := h.c.Create(o); err != nil && !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
}

func (h *history) exists(i int) bool {
	return fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", fmt.Sprintf("cool.v%d", i)) != nil
}

func (h *history) step(t *rapid.T) {
	live := h.live()
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0, 1: // install, or upgrade
		next := rapid.IntRange(0, 2).Draw(t, "version")
		if n := len(live); n > 0 {
			next = int(live[n-1].Spec.Version.Major) + 1
		}
		if !h.exists(next) {
			h.bring(t, next, true)
		}
	case 2: // the RBAC of the next installation comes while the old one is leaving
		require.NoError(t, h.c.RunFor(2*time.Second))
		for _, v := range csvs(h.c) {
			if v.DeletionTimestamp != nil && v.Namespace == "ns" {
				h.bring(t, int(v.Spec.Version.Major), false)
			}
		}
	case 3, 4: // delete the oldest or the newest
		if n := len(live); n > 0 {
			require.NoError(t, h.c.Delete(refOf(live[rapid.SampledFrom([]int{0, n - 1}).Draw(t, "which")])))
		}
	case 5: // an operand
		require.NoError(t, ignoreExisting(h.c.Create(cool(fmt.Sprintf("c%d", rapid.IntRange(0, 2).Draw(t, "operand"))))))
	case 6:
		h.c.Inject(fake.Fault{
			Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "fault"),
			Nth:  rapid.IntRange(1, 5).Draw(t, "nth"),
		})
	case 7:
		ban := rapid.SampledFrom([]string{"delete ClusterRole", "delete ClusterRoleBinding", "delete Deployment", "update ClusterServiceVersion", "delete Cool"}).Draw(t, "ban")
		if len(h.forbidden) == 0 {
			h.since = h.c.Now()
		}
		h.forbidden[ban] = true
	case 8:
		clear(h.forbidden)
	case 9: // an outage
		require.NoError(t, h.c.RunFor(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds"))*time.Second))
	}
	if len(h.forbidden) > 0 && h.c.Now().Sub(h.since) > 4*time.Minute {
		clear(h.forbidden)
	}
}

// check looks at what must hold at any time.
func (h *history) check(t *rapid.T) {
	require.NoError(t, h.violation, "%s", fake.Format(h.d.Events))
	now := map[types.UID]bool{}
	for _, v := range csvs(h.c) {
		h.seen[v.UID], now[v.UID] = v, true
	}
	for uid, v := range h.seen {
		if now[uid] {
			continue
		}
		delete(h.seen, uid)
		if !slices.Contains(v.Finalizers, csv.Finalizer) {
			continue // it went before anybody saw it: Sweep reports what it left
		}
		for _, o := range h.c.Objects() {
			owner, _ := olmcore.OwnerOf(o.GetLabels())
			created := o.GetCreationTimestamp()
			late := v.DeletionTimestamp != nil && created.After(v.DeletionTimestamp.Time)
			if owner.Kind == "ClusterServiceVersion" && owner.Name == v.Name && owner.Namespace == v.Namespace && o.GetNamespace() == "" && !late {
				t.Fatalf("%s outlives %s\n%s", olmcore.KeyOf(o), v.Name, fake.Format(h.d.Events))
			}
		}
	}
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// TestAnyHistoryEndsClean: no dependant outlives the finalizer, nothing that a
// live version needs is deleted, every deletion ends, and what is wanted runs in
// the end.
func TestAnyHistoryEndsClean(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		neighbour := rapid.Bool().Draw(t, "neighbour")
		if neighbour { // another tenant owns the same CRD
			other := h.template.DeepCopy()
			other.Namespace, other.Name = "other", "cool.v1"
			require.NoError(t, h.c.Create(other))
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			h.step(t)
			for range rapid.IntRange(0, 4).Draw(t, "rounds") {
				_, err := h.d.Round(ctx)
				require.NoError(t, err)
				h.check(t)
			}
		}
		clear(h.forbidden)
		h.c.Recover()
		require.NoError(t, h.d.RunUntilIdle(ctx, 2*time.Hour))
		h.check(t)
		ready := len(h.live()) == 0
		for _, v := range csvs(h.c) {
			require.Nil(t, v.DeletionTimestamp, "%s is still held: %s\n%s", v.Name, v.Status.Message, fake.Format(h.d.Events))
			ready = ready || v.Namespace == "ns" && v.Status.Phase == succeeded
		}
		require.True(t, ready, "%v\n%s", phases(h.live()), fake.Format(h.d.Events))
	})
}

func phases(list []*v1alpha1.ClusterServiceVersion) (said []string) {
	for _, v := range list {
		said = append(said, fmt.Sprintf("%s %s %s", v.Name, v.Status.Phase, v.Status.Message))
	}
	return said
}
