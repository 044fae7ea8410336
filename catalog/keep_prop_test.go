// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

const keptPod = "olmcore/kept-pod"

// TestTwoManagersNeverDeleteAllServingPods runs two managers with stale caches and different clocks on healthy Nodes.
// Each write happens at any time after its decision. It checks that no write deletes the last Pod that serves.
func TestTwoManagersNeverDeleteAllServingPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawPair(t)
		t.Repeat(w.steps())
		w.rest(t)
	})
}

// pairWorld is a cluster whose Pods do not fail, and two managers.
type pairWorld struct {
	*fake.Cluster
	config  catalog.Config
	views   [2]*fake.View
	skew    [2]time.Duration
	last    [2]olmcore.LastResults
	pending [2][]olmcore.Action // what each manager has decided and not written yet
	extra   int
}

func drawPair(t *rapid.T) *pairWorld {
	w := &pairWorld{Cluster: fake.NewCluster(start)}
	w.AutoCreateNamespaces = true
	w.config.Replicas = rapid.IntRange(1, 2).Draw(t, "replicas")
	for _, node := range []string{"a", "b", "c"} {
		require.NoError(t, w.Node(node).Create(nil))
	}
	cs := cool()
	if rapid.Bool().Draw(t, "polls") {
		cs.Spec.UpdateStrategy = polling("1m")
	}
	require.NoError(t, w.Create(cs))
	d := &fake.Driver{Cluster: w.Cluster, Controllers: []controller.Controller{catalogController(w.config)}}
	require.NoError(t, d.RunFor(context.Background(), 5*time.Minute))
	w.views = [2]*fake.View{w.View("one"), w.View("two")}
	for i := range w.skew {
		w.skew[i] = rapid.SampledFrom([]time.Duration{0, 30 * time.Second, -30 * time.Second}).Draw(t, "skew")
	}
	return w
}

// healthy returns the Pods that serve clients.
func (w *pairWorld) healthy() (pods []*corev1.Pod) {
	all, _ := olmcore.List[*corev1.Pod](context.Background(), w.Cluster, "olm", nil)
	for _, pod := range all {
		ready := false
		for _, c := range pod.Status.Conditions {
			ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		if ready && pod.DeletionTimestamp == nil && pod.Labels["olm.catalogSource"] == "cool" && pod.Labels["olm.managed"] == "true" {
			pods = append(pods, pod)
		}
	}
	return pods
}

// decide lets a manager decide from its cache.
func (w *pairWorld) decide(t *rapid.T, who int) {
	in, err := catalog.Gather(context.Background(), w.views[who], coolKey, w.config)
	require.NoError(t, err)
	in.Now, in.LastRun = w.Now().Add(w.skew[who]), w.last[who]
	out := answer(t, in)
	checkSafety(t, in, out, 5)
	w.pending[who] = out.Actions
}

// act executes the next action of a manager.
func (w *pairWorld) act(t *rapid.T, who int) {
	if len(w.pending[who]) == 0 {
		return
	}
	action := w.pending[who][0]
	w.pending[who] = w.pending[who][1:]
	before := w.healthy()
	err := olmcore.Run(context.Background(), w.Cluster, []olmcore.Action{action})
	if err != nil {
		w.pending[who] = nil // it would read again
	}
	w.last[who] = olmcore.LastResultsOf(w.last[who], []olmcore.Action{action}, err, w.Now())
	if len(before) > 0 {
		verb, target, cause := action.Describe()
		require.NotEmpty(t, w.healthy(), "manager %d: %s of %s (%s) leaves no Pod that serves", who, verb, target, cause.Reason)
	}
}

func (w *pairWorld) steps() map[string]func(*rapid.T) {
	who := func(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "who") }
	steps := map[string]func(*rapid.T){
		"decide": func(t *rapid.T) { w.decide(t, who(t)) },
		"act":    func(t *rapid.T) { w.act(t, who(t)) },
		"act all": func(t *rapid.T) {
			for i := who(t); len(w.pending[i]) > 0; {
				w.act(t, i)
			}
		},
		"work": func(t *rapid.T) {
			i := who(t)
			w.views[i].Sync()
			for w.decide(t, i); len(w.pending[i]) > 0; {
				w.act(t, i)
			}
			require.NoError(t, w.Settle())
		},
		"sync": func(t *rapid.T) { w.views[who(t)].Sync() },
		"sync a bit": func(t *rapid.T) {
			view := w.views[who(t)]
			for _, kind := range view.Behind() {
				for range rapid.IntRange(0, 4).Draw(t, kind.Kind) {
					view.Next(kind)
				}
			}
		},
		"settle": func(t *rapid.T) { require.NoError(t, w.Settle()) },
		"time": func(t *rapid.T) {
			require.NoError(t, w.RunFor(rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, 2 * time.Minute}).Draw(t, "time")))
		},
		"spec changes": func(t *rapid.T) {
			name := image(t)
			require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Image = name }))
		},
		"replicas change": func(t *rapid.T) {
			replicas := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "replicas")
			require.NoError(t, w.annotate("olmcore/replicas", replicas))
		},
		"tag moves": func(t *rapid.T) {
			w.Image(image(t)).SetDigest(fmt.Sprintf("sha256:%064d", rapid.IntRange(1, 3).Draw(t, "digest")))
		},
		"tenant": w.attack,
		"surplus": func(t *rapid.T) {
			if pods := w.healthy(); len(pods) > 0 && len(pods) < 4 {
				w.addCopy(t, rapid.SampledFrom(pods).Draw(t, "of"))
			}
		},
	}
	for _, name := range []string{"decide", "act all", "work", "sync a bit"} {
		steps[name+" 2"], steps[name+" 3"] = steps[name], steps[name]
	}
	return steps
}

// attack lets a tenant write the annotation.
func (w *pairWorld) attack(t *rapid.T) {
	values := []string{"", "nonsense"}
	for _, pod := range w.healthy() {
		values = append(values, string(pod.UID))
	}
	require.NoError(t, w.annotate(keptPod, rapid.SampledFrom(values).Draw(t, "value")))
}

func (w *pairWorld) annotate(key, value string) error {
	return fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
		if cs.Annotations == nil {
			cs.Annotations = map[string]string{}
		}
		cs.Annotations[key] = value
	})
}

// addCopy adds a Pod that OLM or a crashed manager left behind.
func (w *pairWorld) addCopy(t require.TestingT, pod *corev1.Pod) {
	w.extra++
	again := pod.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: fmt.Sprintf("cool-extra%d", w.extra), Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
	}
	again.Spec.NodeName, again.Status = "", corev1.PodStatus{}
	again.Spec.Volumes, again.Spec.Containers[0].VolumeMounts = nil, nil
	require.NoError(t, w.Create(again))
	require.NoError(t, w.Settle())
}

// rest lets both managers read everything, and checks that no surplus Pod stays.
func (w *pairWorld) rest(t *rapid.T) {
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.UpdateStrategy = nil }))
	for range 60 {
		for i := range w.views {
			w.views[i].Sync()
			for w.decide(t, i); len(w.pending[i]) > 0; {
				w.act(t, i)
			}
		}
		require.NoError(t, w.RunFor(10*time.Second))
	}
	in, err := catalog.Gather(context.Background(), w.Cluster, types.NamespacedName(coolKey), w.config)
	require.NoError(t, err)
	in.Now = w.Now()
	require.Len(t, w.healthy(), catalog.Assess(in).Replicas)
	for i := range w.views {
		w.decide(t, i)
		require.Empty(t, w.pending[i], "manager %d is not at rest", i)
	}
}
