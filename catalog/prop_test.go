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
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// rounds is the number of reconciles after which a CatalogSource is at rest if the cluster does not change.
const rounds = 8

// TestCatalogServesAgainAfterAnyFailure checks safety and laws in random worlds in which things fail, and that the
// catalog serves again afterwards.
func TestCatalogServesAgainAfterAnyFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		t.Repeat(w.steps())
		w.heal(t)
	})
}

// stormyWorld is a cluster in which things fail, with two controllers whose caches lag.
type stormyWorld struct {
	*fake.Cluster
	// views are the caches of two controllers that both believe to be the only one.
	views      [2]*fake.View
	config     catalog.Config
	last       [2]olmcore.LastResults
	checkpoint [2]*olmcore.Checkpoint
	// clients are the controllers' gRPC clients.
	clients [2]*catalog.Connection
	nodes   []string
	// tried is the version of the cluster for which each controller was tried at rest.
	tried [2]string
	// skew is how far the clock of each controller is ahead of that of the API server.
	skew [2]time.Duration
}

func drawWorld(t *rapid.T) *stormyWorld {
	w := &stormyWorld{Cluster: fake.NewCluster(start), nodes: []string{"a", "b", "c"}}
	w.AutoCreateNamespaces = true
	w.config = catalog.Config{
		Replicas: rapid.IntRange(1, 3).Draw(t, "replicas"), IgnoreNodes: rapid.IntRange(0, 9).Draw(t, "ignore nodes") == 0,
		ForceDelete: rapid.SampledFrom([]catalog.ForceDeletePolicy{"", "", catalog.ForceDeleteNever, catalog.ForceDeleteNodeGone}).Draw(t, "force delete"),
	}
	for _, node := range w.nodes {
		require.NoError(t, w.Node(node).Create(nil))
	}
	cs := cool()
	if rapid.Bool().Draw(t, "polls") {
		cs.Spec.UpdateStrategy = polling(rapid.SampledFrom([]string{"1m", "15m", "45m", "nonsense"}).Draw(t, "interval"))
	}
	if rapid.IntRange(0, 2).Draw(t, "config map") == 0 {
		cs.Spec.SourceType, cs.Spec.ConfigMap = v1alpha1.SourceTypeConfigmap, "content"
	}
	require.NoError(t, w.Create(cs, bystander(), content()))
	if rapid.IntRange(0, 3).Draw(t, "serves") > 0 {
		d := &fake.Driver{Cluster: w.Cluster, Controllers: []controller.Controller{catalogController(w.config)}}
		require.NoError(t, d.RunFor(context.Background(), 10*time.Minute))
	}
	w.views = [2]*fake.View{w.View("catalog"), w.View("another")}
	return w
}

// clock returns the time that the clock of a controller shows.
func (w *stormyWorld) clock(who int) time.Time { return w.Now().Add(w.skew[who]) }

// work lets the controllers observe all changes and reconcile a few times.
func (w *stormyWorld) work(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "rounds") {
		who := rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "who")
		w.views[who].Sync()
		w.reconcileAs(t, who)
		require.NoError(t, w.Settle())
	}
}

// outage makes the Node of a Pod unreachable for some time while one controller works.
func (w *stormyWorld) outage(t *rapid.T) {
	pods := w.own()
	if len(pods) == 0 {
		return
	}
	node := rapid.SampledFrom(pods).Draw(t, "whose node").Spec.NodeName
	if err := w.Node(node).Fail(); err != nil {
		return // the Pod is on none, or that is gone
	}
	w.wait(t)
	if rapid.Bool().Draw(t, "returns") {
		require.NoError(t, w.Node(node).Heal())
		w.wait(t)
	}
}

// update moves the tag of the image, and waits for the next poll.
func (w *stormyWorld) update(t *rapid.T) {
	cs, err := olmcore.Get[*v1alpha1.CatalogSource](context.Background(), w.Cluster, "olm", "cool")
	require.NoError(t, err)
	w.Image(cs.Spec.Image).SetDigest(fmt.Sprintf("sha256:%064d", rapid.IntRange(1, 3).Draw(t, "digest")))
	require.NoError(t, w.RunFor(20*time.Minute))
	w.wait(t)
}

// wait lets time pass while one controller works.
func (w *stormyWorld) wait(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{10 * time.Second, 20 * time.Second, time.Minute}).Draw(t, "each")
	for range rapid.IntRange(1, 6).Draw(t, "times") {
		require.NoError(t, w.RunFor(d))
		w.views[0].Sync()
		w.reconcileAs(t, 0)
	}
}

func (w *stormyWorld) steps() map[string]func(*rapid.T) {
	node := func(do func(string) error) func(*rapid.T) {
		return func(t *rapid.T) {
			if err := do(rapid.SampledFrom(w.nodes).Draw(t, "node")); !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
				require.NoError(t, err)
			}
		}
	}
	pod := func(do func(*rapid.T, *corev1.Pod)) func(*rapid.T) {
		return func(t *rapid.T) {
			if pods := w.own(); len(pods) > 0 {
				do(t, rapid.SampledFrom(pods).Draw(t, "pod"))
			}
		}
	}
	return map[string]func(*rapid.T){
		"reconcile": w.reconcile(0),
		"work":      w.work,
		"work 2":    w.work,
		"work 3":    w.work,
		"wait":      w.wait,
		"wait 2":    w.wait,
		"wait 3":    w.wait,
		"outage":    w.outage,
		"outage 2":  w.outage,
		"update":    w.update,
		"client changes": func(t *rapid.T) {
			who := rapid.IntRange(0, 1).Draw(t, "whose")
			client := w.clients[who]
			if client == nil {
				return
			}
			client.State = rapid.SampledFrom([]string{"IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE", "SHUTDOWN"}).Draw(t, "client")
			if client.LastTransition = w.clock(who); client.State == "READY" {
				client.LastConnect = client.LastTransition
			}
		},
		"another one": w.reconcile(1),
		"sync":        func(*rapid.T) { w.views[0].Sync() },
		"sync both":   func(*rapid.T) { w.views[0].Sync(); w.views[1].Sync() },
		"sync a bit":  w.syncSome,
		"restart":     func(*rapid.T) { w.views[0].Restart(); w.last[0], w.checkpoint[0], w.clients[0] = nil, nil, nil },
		"clock is set": func(t *rapid.T) {
			skew := rapid.SampledFrom([]time.Duration{0, time.Hour, -time.Hour, time.Second, 1500 * time.Millisecond}).Draw(t, "skew")
			w.skew = [2]time.Duration{skew, skew}
		},
		"settle":       func(t *rapid.T) { require.NoError(t, w.Settle()) },
		"step":         func(*rapid.T) { w.Step() },
		"time":         w.letTimePass,
		"node fails":   node(func(n string) error { return w.Node(n).Fail() }),
		"node unready": node(func(n string) error { return w.Node(n).SetNotReady("") }),
		"node heals":   node(func(n string) error { return w.Node(n).Heal() }),
		"node goes":    node(func(n string) error { return w.Node(n).Delete() }),
		"node comes":   node(func(n string) error { return w.Node(n).Create(nil) }),
		"node drains":  node(func(n string) error { _ = w.Node(n).Drain(); return nil }), // a budget may forbid it
		"node opens":   node(func(n string) error { return w.Node(n).Uncordon() }),
		"node is off": node(func(n string) error {
			return w.Node(n).Taint(corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
		}),
		"pod deleted":  pod(func(t *rapid.T, p *corev1.Pod) { require.NoError(t, w.Delete(olmcore.RefOf(p))) }),
		"pod ends":     pod(w.finish),
		"object lost":  w.loseObject,
		"spec changes": w.changeSpec,
		"polling changes": func(t *rapid.T) {
			strategy := rapid.SampledFrom([]*v1alpha1.UpdateStrategy{nil, polling("1m"), polling("1h")}).Draw(t, "strategy")
			require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.UpdateStrategy = strategy }))
		},
		"type changes": func(t *rapid.T) {
			kind := rapid.SampledFrom([]v1alpha1.SourceType{v1alpha1.SourceTypeGrpc, v1alpha1.SourceTypeConfigmap, v1alpha1.SourceTypeInternal, "Grpc"}).Draw(t, "type")
			address := rapid.IntRange(0, 3).Draw(t, "address") == 0
			require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
				cs.Spec.SourceType, cs.Spec.ConfigMap, cs.Spec.Address, cs.Spec.Image = kind, "content", "", "quay.io/example/catalog:v1"
				if address {
					cs.Spec.Address, cs.Spec.Image = "registry:50051", ""
				}
			}))
		},
		"content changes": func(t *rapid.T) {
			data := rapid.SampledFrom([]string{"cool", "cooler"}).Draw(t, "data")
			label := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "label")
			w.restoreContent(t)
			require.NoError(t, fake.Edit(w.Cluster, "olm", "content", func(cm *corev1.ConfigMap) {
				cm.Data["packages"], cm.Labels = data, map[string]string{"label": label}
			}))
		},
		"settings change": w.changeSettings,
		"pod set aside": pod(func(t *rapid.T, p *corev1.Pod) {
			label := rapid.SampledFrom([]string{"olm.managed", "olm.catalogSource", "olm.pod-spec-hash"}).Draw(t, "label")
			require.NoError(t, fake.Edit(w.Cluster, "olm", p.Name, func(p *corev1.Pod) { delete(p.Labels, label) }))
		}),
		"made anew": func(t *rapid.T) {
			old, err := olmcore.Get[*v1alpha1.CatalogSource](context.Background(), w.Cluster, "olm", "cool")
			require.NoError(t, err)
			require.NoError(t, w.Delete(olmcore.RefOf(old)))
			again := cool()
			again.Spec, again.Annotations = *old.Spec.DeepCopy(), old.Annotations
			require.NoError(t, w.Create(again))
		},
		"status lost": func(t *rapid.T) {
			require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Status = v1alpha1.CatalogSourceStatus{} }))
		},
		"image breaks": func(t *rapid.T) {
			w.Image(image(t)).Break(rapid.SampledFrom([]string{"", fake.CrashLoopBackOff, fake.NeverReady}).Draw(t, "how"))
		},
		"image heals": func(t *rapid.T) { w.Image(image(t)).Heal() },
		"tag moves": func(t *rapid.T) {
			w.Image(image(t)).SetDigest(fmt.Sprintf("sha256:%064d", rapid.IntRange(1, 3).Draw(t, "digest")))
		},
		"fault": w.fault,
	}
}

func image(t *rapid.T) string {
	return fmt.Sprintf("quay.io/example/catalog:v%d", rapid.IntRange(1, 3).Draw(t, "image"))
}

// own returns the Pods that belong to the CatalogSource.
func (w *stormyWorld) own() (pods []*corev1.Pod) {
	all, _ := olmcore.List[*corev1.Pod](context.Background(), w.Cluster, "olm", nil)
	for _, pod := range all {
		if pod.Name != "bystander" {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (w *stormyWorld) syncSome(t *rapid.T) {
	view := w.views[rapid.IntRange(0, 1).Draw(t, "whose")]
	for _, kind := range view.Behind() {
		for range rapid.IntRange(0, 3).Draw(t, kind.Kind) {
			view.Next(kind)
		}
	}
}

// changeSettings changes the settings of an administrator.
func (w *stormyWorld) changeSettings(t *rapid.T) {
	replicas := rapid.SampledFrom([]string{"1", "2", "3", "many"}).Draw(t, "replicas")
	config := rapid.SampledFrom([]*v1alpha1.GrpcPodConfig{nil, {SecurityContextConfig: v1alpha1.Restricted}, {
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}, {NodeSelector: map[string]string{"kubernetes.io/os": "linux", "disk": "none"}}}).Draw(t, "pod config")
	secrets := rapid.SampledFrom([][]string{nil, {"pull"}}).Draw(t, "secrets")
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
		cs.Annotations = map[string]string{"olmcore/replicas": replicas}
		cs.Spec.GrpcPodConfig, cs.Spec.Secrets = config.DeepCopy(), secrets
	}))
}

func (w *stormyWorld) letTimePass(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, 29 * time.Second, time.Minute, 5 * time.Minute, 11 * time.Minute}).Draw(t, "time")
	require.NoError(t, w.RunFor(d))
}

func (w *stormyWorld) finish(t *rapid.T, pod *corev1.Pod) {
	after := pod.DeepCopy()
	after.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded}).Draw(t, "phase")
	require.NoError(t, w.UpdateStatus(after))
}

func (w *stormyWorld) loseObject(t *rapid.T) {
	var candidates []olmcore.Object
	for _, o := range w.Objects() {
		switch o.(type) {
		case *corev1.Service, *corev1.ServiceAccount, *networkingv1.NetworkPolicy, *rbacv1.Role, *rbacv1.RoleBinding, *policyv1.PodDisruptionBudget:
			candidates = append(candidates, o)
		}
	}
	if len(candidates) > 0 {
		require.NoError(t, w.Delete(olmcore.RefOf(rapid.SampledFrom(candidates).Draw(t, "object"))))
	}
}

func (w *stormyWorld) changeSpec(t *rapid.T) {
	image := image(t)
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Image = image }))
}

func (w *stormyWorld) fault(t *rapid.T) {
	w.Faults().Inject(fake.Fault{
		Nth:  rapid.IntRange(1, 3).Draw(t, "nth"),
		Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict}).Draw(t, "mode"),
	})
}

func (w *stormyWorld) reconcileAs(t *rapid.T, who int) {
	ctx := context.Background()
	in, err := catalog.Gather(ctx, w.views[who], coolKey, w.config)
	if apierrors.IsNotFound(err) {
		return // the cache does not have it yet
	}
	require.NoError(t, err)
	in.Now, in.LastRun = w.clock(who), w.last[who]
	if client := w.clients[who]; client != nil {
		in.Connection = new(*client)
	}
	out := answer(t, in)
	// At rest the laws are checked once for each version of the cluster.
	if !out.Result.Empty() || w.tried[who] != w.ResourceVersion() {
		require.NoError(t, invariant.Laws(result, in))
		checkMessages(t, in)
		w.tried[who] = w.ResourceVersion()
	}
	remembering := in
	remembering.Checkpoint = w.checkpoint[who]
	again := answer(t, remembering)
	if again.RequeueAfter < out.RequeueAfter { // both are bounded, the other one from an earlier time on
		again.RequeueAfter = out.RequeueAfter
	}
	require.Equal(t, out.Result, again.Result, "the Checkpoint must not change the result")
	checkSafety(t, in, out, catalog.Assess(in).Replicas)
	checkEdge(t, in)
	checkPromises(t, in, out)
	w.last[who] = olmcore.LastResultsOf(w.last[who], out.Actions, olmcore.Run(ctx, w.Cluster, out.Actions), in.Now)
	w.checkpoint[who] = out.Checkpoint
	switch out.Connection.Verb {
	case catalog.ConnectionConnect:
		w.clients[who] = &catalog.Connection{Address: out.Connection.Address, State: "IDLE", LastTransition: in.Now}
	case catalog.ConnectionDrop:
		w.clients[who] = nil
	}
}

// restoreContent creates the ConfigMap of the user again if it was deleted with a CatalogSource that had adopted it.
func (w *stormyWorld) restoreContent(t *rapid.T) {
	cm, err := olmcore.Get[*corev1.ConfigMap](context.Background(), w.Cluster, "olm", "content")
	require.NoError(t, err)
	if cm == nil {
		require.NoError(t, w.Create(content()))
	}
}

// mend corrects the mistakes of the user. Pods without their labels are deleted.
func (w *stormyWorld) mend(t *rapid.T) {
	require.NoError(t, w.Settle()) // what has no owner any more is collected
	w.restoreContent(t)
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
		if c := cs.Spec.GrpcPodConfig; c != nil {
			c.NodeSelector = nil
		}
		if cs.Spec.SourceType == "Grpc" {
			cs.Spec.SourceType = v1alpha1.SourceTypeGrpc
		}
		if cs.Spec.Image == "" {
			cs.Spec.Image = "quay.io/example/catalog:v1"
		}
	}))
	for _, pod := range w.own() {
		if _, labelled := pod.Labels["olm.catalogSource"]; !labelled {
			require.NoError(t, w.Delete(olmcore.RefOf(pod)))
		}
	}
}

// heal ends all failures, and checks that as many Pods as configured serve one content and that nothing else is left.
func (w *stormyWorld) heal(t *rapid.T) {
	w.Faults().Clear()
	for _, view := range w.views {
		view.Close()
	}
	for _, node := range w.nodes {
		_ = w.Node(node).Create(nil)
		require.NoError(t, w.Node(node).Heal())
		require.NoError(t, w.Node(node).Uncordon())
		require.NoError(t, w.Node(node).Untaint(corev1.TaintNodeOutOfService))
	}
	for i := range 3 {
		w.Image(fmt.Sprintf("quay.io/example/catalog:v%d", i+1)).Heal()
	}
	w.mend(t)
	d := &fake.Driver{Cluster: w.Cluster, Controllers: []controller.Controller{catalogController(w.config)}}
	require.NoError(t, d.RunFor(context.Background(), 3*time.Hour))
	// A polled catalog never rests; what polling left behind must go with it.
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.UpdateStrategy = nil }))
	require.NoError(t, d.RunFor(context.Background(), time.Hour))
	in, err := catalog.Gather(context.Background(), w.Cluster, coolKey, w.config)
	require.NoError(t, err)
	in.Now = w.Now()
	out := answer(t, in)
	require.Empty(t, out.Result, "not at rest")
	a := catalog.Assess(in)
	require.Equal(t, catalog.StateServing, a.State, "%+v", a)
	own := w.own()
	require.Len(t, own, a.Replicas)
	for _, pod := range own {
		require.Equal(t, "cool", pod.Labels["olm.catalogSource"])
		require.Equal(t, own[0].Labels["olm.pod-spec-hash"], pod.Labels["olm.pod-spec-hash"], "two specs behind one Service")
		require.Equal(t, own[0].Status.ContainerStatuses[0].ImageID, pod.Status.ContainerStatuses[0].ImageID, "two contents behind one Service")
	}
	events := len(d.Events)
	require.NoError(t, d.RunFor(context.Background(), 24*time.Hour))
	require.Len(t, d.Events, events, "it did not stay at rest")

	// Deleted, it takes everything with it, and leaves what is not its own.
	require.NoError(t, w.Delete(olmcore.RefOf(in.CatalogSource)))
	require.NoError(t, d.RunFor(context.Background(), time.Hour))
	for _, o := range w.Objects() {
		require.False(t, olmcore.OwnedBy(o, in.CatalogSource.UID), "%s is left", olmcore.KeyOf(o))
	}
	left, err := olmcore.Get[*corev1.ConfigMap](context.Background(), w.Cluster, "olm", "content")
	require.NoError(t, err)
	require.NotNil(t, left, "the user's ConfigMap is gone")
}
