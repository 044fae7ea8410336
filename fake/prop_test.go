// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

// storeModel is what must be true of a few ConfigMaps, kept beside the cluster.
type storeModel struct {
	*fake.Cluster
	data    map[string]string // by name, of those that exist
	seen    []*corev1.ConfigMap
	version uint64
	uids    map[types.UID]bool
}

func (m *storeModel) checkVersion(t *rapid.T, changed bool) {
	version, err := strconv.ParseUint(m.ResourceVersion(), 10, 64)
	require.NoError(t, err)
	if changed {
		require.Greater(t, version, m.version)
	} else {
		require.Equal(t, m.version, version)
	}
	m.version = version
}

func (m *storeModel) observe(name string) *corev1.ConfigMap {
	cm := fake.Find[*corev1.ConfigMap](m.Cluster, "ns", name)
	if cm != nil {
		m.seen = append(m.seen, cm)
	}
	return cm
}

// withSeen runs an action on some version that was seen; nothing while none was.
func (m *storeModel) withSeen(t *rapid.T, action func(*corev1.ConfigMap)) {
	if len(m.seen) > 0 {
		action(rapid.SampledFrom(m.seen).Draw(t, "seen"))
	}
}

func (m *storeModel) create(t *rapid.T, name, value string) {
	cm := configMap(name)
	cm.Data = map[string]string{"v": value}
	err := m.Do(t.Context(), olmcore.CreateOf(cm, olmcore.Cause{}))
	_, there := m.data[name]
	require.Equal(t, there, apierrors.IsAlreadyExists(err), "%v", err)
	if !there {
		m.data[name] = value
		uid := m.observe(name).UID
		require.False(t, m.uids[uid], "a UID is never used twice")
		m.uids[uid] = true
	}
	m.checkVersion(t, !there)
}

func (m *storeModel) update(t *rapid.T, before *corev1.ConfigMap, value string) {
	after := before.DeepCopy()
	after.Data = map[string]string{"v": value}
	live := fake.Find[*corev1.ConfigMap](m.Cluster, "ns", before.Name)
	err := m.Do(t.Context(), olmcore.UpdateOf(before, after, olmcore.Cause{}))
	changed := false
	switch {
	case live == nil:
		require.True(t, apierrors.IsNotFound(err))
	case live != before:
		require.True(t, apierrors.IsConflict(err))
	default:
		require.NoError(t, err)
		changed = m.data[before.Name] != value
		m.data[before.Name] = value
		m.observe(before.Name)
	}
	m.checkVersion(t, changed)
}

func (m *storeModel) remove(t *rapid.T, seen *corev1.ConfigMap) {
	live := fake.Find[*corev1.ConfigMap](m.Cluster, "ns", seen.Name)
	remove := olmcore.DeleteOf(seen, olmcore.Cause{})
	anyVersion := rapid.Bool().Draw(t, "any version")
	if anyVersion {
		remove.Target = remove.Target.Unversioned()
	}
	err := m.Do(t.Context(), remove)
	same := live != nil && live.UID == seen.UID
	deleted := same && (anyVersion || live.ResourceVersion == seen.ResourceVersion)
	require.Equal(t, deleted, err == nil, "%v", err)
	require.Equal(t, !same, olmcore.Classify(err) == olmcore.Gone, "%v", err)
	require.Equal(t, same && !deleted, olmcore.Classify(err) == olmcore.Conflict, "%v", err)
	if deleted {
		delete(m.data, seen.Name)
	}
	m.checkVersion(t, deleted)
}

func TestStoreAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &storeModel{Cluster: fake.NewCluster(start), data: map[string]string{}, uids: map[types.UID]bool{}}
		m.AutoCreateNamespaces = true
		m.Sharing().Watch()
		require.NoError(t, m.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
		m.checkVersion(t, true)
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		values := rapid.SampledFrom([]string{"1", "2"})
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) { m.create(t, names.Draw(t, "name"), values.Draw(t, "value")) },
			"update what was seen": func(t *rapid.T) {
				m.withSeen(t, func(cm *corev1.ConfigMap) { m.update(t, cm, values.Draw(t, "value")) })
			},
			"delete what was seen": func(t *rapid.T) { m.withSeen(t, func(cm *corev1.ConfigMap) { m.remove(t, cm) }) },
			"": func(t *rapid.T) {
				got := map[string]string{}
				list, err := m.List(t.Context(), configMapGVK, "ns", nil)
				require.NoError(t, err)
				for _, o := range list {
					got[o.GetName()] = o.(*corev1.ConfigMap).Data["v"]
				}
				require.Empty(t, cmp.Diff(m.data, got))
				require.True(t, slices.IsSortedFunc(list, func(a, b olmcore.Object) int { return olmcore.KeyOf(a).Compare(olmcore.KeyOf(b)) }))
				require.NoError(t, m.Sharing().Verify())
			},
		})
	})
}

// ownersHold checks what garbage collection promises: nothing is left whose
// owners are all gone, no reference dangles, and nothing more happens.
func ownersHold(t require.TestingT, c *fake.Cluster) {
	uids := map[types.UID]bool{}
	for _, o := range c.Objects() {
		uids[o.GetUID()] = true
	}
	for _, o := range c.Objects() {
		for _, ref := range o.GetOwnerReferences() {
			require.True(t, uids[ref.UID] || o.GetDeletionTimestamp() != nil, "%s has a dangling owner %s", o.GetName(), ref.Name)
		}
		if o.GetDeletionTimestamp() != nil {
			require.NotEmpty(t, o.GetFinalizers(), "%s is held by nothing", o.GetName())
		}
	}
	require.False(t, c.Step())
}

func TestGarbageCollectionReachesAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := fake.NewCluster(start)
		c.AutoCreateNamespaces = true
		name := func(label string) string { return fmt.Sprintf("cm-%d", rapid.IntRange(0, 9).Draw(t, label)) }
		policies := rapid.SampledFrom([]metav1.DeletionPropagation{"", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan})
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0, 1:
				cm := configMap(name("create"))
				for range rapid.IntRange(0, 2).Draw(t, "owners") {
					owner := fake.Find[*corev1.ConfigMap](c, "ns", name("owner"))
					if owner == nil || olmcore.OwnedBy(cm, owner.UID) {
						continue
					}
					ref := olmcore.OwnerReferenceTo(owner)
					ref.BlockOwnerDeletion = new(rapid.Bool().Draw(t, "blocks"))
					cm.OwnerReferences = append(cm.OwnerReferences, ref)
				}
				if err := c.Create(cm); err != nil {
					require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
				}
			case 2:
				if err := c.Delete(refTo(configMap(name("delete"))), options(policies.Draw(t, "policy"))); err != nil {
					require.True(t, apierrors.IsNotFound(err), "%v", err)
				}
			case 3:
				for range rapid.IntRange(0, 5).Draw(t, "steps") {
					c.Step()
				}
			}
		}
		require.NoError(t, c.Settle())
		ownersHold(t, c)
	})
}

// TestTheSameChoicesGiveTheSameCluster runs random operations on two clusters.
func TestTheSameChoicesGiveTheSameCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := fake.NewCluster(start), fake.NewCluster(start)
		both := func(f func(c *fake.Cluster) error) {
			a, b := f(one), f(two)
			require.Equal(t, fmt.Sprint(a), fmt.Sprint(b))
		}
		for _, c := range []*fake.Cluster{one, two} {
			c.AutoCreateNamespaces = true
		}
		nodes, pods := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"p", "q", "r"})
		for range rapid.IntRange(1, 30).Draw(t, "operations") {
			node, pod := nodes.Draw(t, "node"), pods.Draw(t, "pod")
			steps := rapid.IntRange(0, 8).Draw(t, "steps")
			d := time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second
			operation := rapid.IntRange(0, 8).Draw(t, "operation")
			both(func(c *fake.Cluster) error {
				switch operation {
				case 0:
					return c.Node(node).Create(nil)
				case 1:
					return c.Node(node).Fail()
				case 2:
					return c.Node(node).Heal()
				case 3:
					return c.Node(node).Delete()
				case 4:
					return c.Create(newPod(pod))
				case 5:
					return c.Delete(refTo(newPod(pod)))
				case 6:
					return c.RunFor(d)
				case 7:
					return c.Create(deployment(pod))
				}
				for range steps {
					c.Step()
				}
				c.Advance(d)
				return nil
			})
		}
		both((*fake.Cluster).Settle)
		require.Equal(t, one.ResourceVersion(), two.ResourceVersion())
		require.Empty(t, cmp.Diff(one.Objects(), two.Objects()))
		require.False(t, one.Step(), "settled is settled")
	})
}
