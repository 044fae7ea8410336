// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

var (
	start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	coolKey = types.NamespacedName{Namespace: "olm", Name: "cool"}
)

func cool() *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Name: "cool", Namespace: "olm"},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "quay.io/example/catalog:v1"},
	}
}

// world is a cluster with the nodes a and b and one CatalogSource, and the controller over it.
type world struct {
	*fake.Cluster
	*fake.Driver
	config catalog.Config
}

func newWorld(t testing.TB, config catalog.Config, cs *v1alpha1.CatalogSource) *world {
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	for _, node := range []string{"a", "b"} {
		require.NoError(t, c.Node(node).Create(nil))
	}
	require.NoError(t, c.Create(cs))
	driver := &fake.Driver{Cluster: c, Controllers: []controller.Controller{catalogController(config)}}
	return &world{Cluster: c, Driver: driver, config: config}
}

// run lets the controllers and the cluster run for a time.
func (w *world) run(t testing.TB, d time.Duration) {
	require.NoError(t, w.Driver.RunFor(context.Background(), d))
}

// input returns the Input of a reconcile now.
func (w *world) input(t testing.TB) catalog.Input {
	in, err := catalog.Gather(context.Background(), w.Cluster, coolKey, w.config)
	require.NoError(t, err)
	in.Now = w.Cluster.Now()
	return in
}

// converged returns the input of a CatalogSource that serves and is at rest.
func converged(t testing.TB, config catalog.Config, cs *v1alpha1.CatalogSource) catalog.Input {
	w := newWorld(t, config, cs)
	w.run(t, time.Hour)
	return connected(t, w)
}

// connected is what a reconcile sees of a world at rest once its client is connected.
func connected(t testing.TB, w *world) catalog.Input {
	in := w.input(t)
	out := answer(t, in)
	require.True(t, out.Result.Empty(), "not converged: %+v", out)
	in.Connection = &catalog.Connection{Address: "cool.olm.svc:50051", State: "READY", LastConnect: start, LastTransition: start}
	out = answer(t, in)
	require.NoError(t, olmcore.Run(context.Background(), w.Cluster, out.Actions))
	connection := in.Connection
	in = w.input(t)
	in.Connection = connection
	return in
}

func podsOf(in catalog.Input) (serving []*corev1.Pod) {
	for _, pod := range in.Pods.Items {
		if pod.Labels["olm.catalogSource"] == "cool" {
			serving = append(serving, pod)
		}
	}
	return serving
}

// mapped returns a CatalogSource that serves the ConfigMap content.
func mapped() *v1alpha1.CatalogSource {
	cs := cool()
	cs.Spec = v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeConfigmap, ConfigMap: "content"}
	return cs
}

func olmNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olm"}}
}

// mappedWorld returns a world in which mapped serves.
func mappedWorld(t testing.TB, config catalog.Config, cs *v1alpha1.CatalogSource) *world {
	w := newWorld(t, config, cs)
	require.NoError(t, w.Cluster.Create(content()))
	w.run(t, time.Hour)
	return w
}

func mappedInput(t testing.TB, config catalog.Config) catalog.Input {
	in := mappedWorld(t, config, mapped()).input(t)
	out := answer(t, in)
	require.True(t, out.Result.Empty(), "not converged: %+v", out.Result)
	return in
}

// content returns a ConfigMap with the content of a catalog.
func content() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content", Namespace: "olm"}, Data: map[string]string{"packages": "cool"}}
}

var catalogSourceKind = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind)

// catalogController returns a controller of CatalogSources without a gRPC client.
func catalogController(config catalog.Config) controller.Controller {
	return controller.Controller{
		Name:  "catalog",
		Kinds: []schema.GroupVersionKind{catalogSourceKind},
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			in, err := catalog.Gather(ctx, r, key, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now, in.LastRun = now, last
			out, err := catalog.Reconcile(in)
			return out.Result, err
		},
	}
}

// reconcile does what the controller does on its view, and checks every law and every promise on the way.
func (w *stormyWorld) reconcile(who int) func(*rapid.T) {
	return func(t *rapid.T) { w.reconcileAs(t, who) }
}

// reconcile is Reconcile of a changed converged input, checked for safety and laws. The Pod that stays is recorded.
func reconcile(t *testing.T, base catalog.Input, change func(*catalog.Input)) catalog.Outcome {
	t.Helper()
	in := invariant.Clone(base)
	change(&in)
	in = recorded(t, in)
	out := answer(t, in)
	require.NoError(t, invariant.Laws(result, in))
	checkSafety(t, in, out, 5)
	checkPromises(t, in, out)
	return out
}

// done lists the verbs and names of the Pods in an outcome.
func done(out catalog.Outcome) (list []string) {
	for _, a := range out.Actions {
		if verb, target, cause := a.Describe(); target.Kind == "Pod" {
			name := target.Name
			if verb == olmcore.VerbCreate {
				name = "a Pod"
			}
			list = append(list, string(verb)+" "+name+" "+cause.Reason)
		}
	}
	return list
}

// describe prints an outcome with full patches and the names of new objects.
func describe(t testing.TB, out catalog.Outcome) string {
	var b strings.Builder
	for _, a := range out.Actions {
		r, err := olmcore.RecordOf(a)
		require.NoError(t, err)
		if write, ok := a.(olmcore.UpdateStatus); ok {
			describeStatus(t, &b, write)
			continue
		}
		fmt.Fprintf(&b, "%s %s (%s: %s)", r.Verb, r.Target, r.Cause.Reason, r.Cause.Message)
		switch {
		case r.DeleteOptions != nil && r.DeleteOptions.GracePeriodSeconds != nil:
			fmt.Fprintf(&b, " grace=%d version=%v", *r.DeleteOptions.GracePeriodSeconds, r.Target.ResourceVersion != "")
		case r.Patch != nil:
			fmt.Fprintf(&b, " %s", r.Patch)
		}
		b.WriteByte('\n')
	}
	for _, tr := range out.Transitions {
		fmt.Fprintf(&b, "%s %q -> %q (%s) at %s %s\n", tr.Type, tr.From, tr.To, tr.Reason, tr.At.Format(time.TimeOnly), tr.Bound)
	}
	for _, d := range out.Diagnostics {
		fmt.Fprintf(&b, "%s %s %s: %s\n", d.Severity, d.Reason, d.Path, d.Message)
	}
	if out.Connection != (catalog.ConnectionRequest{}) {
		fmt.Fprintf(&b, "%s %s\n", out.Connection.Verb, out.Connection.Address)
	}
	if out.Notify.InvalidateSnapshot {
		fmt.Fprintf(&b, "notify %s\n", out.Notify.ResolveNamespaces)
	}
	if out.RequeueAfter != 0 {
		fmt.Fprintf(&b, "again in %s\n", out.RequeueAfter)
	}
	return strings.TrimSpace(b.String())
}

// describeStatus prints a status without the conditions that say that nothing is wrong.
func describeStatus(t testing.TB, b *strings.Builder, a olmcore.UpdateStatus) {
	before, after := a.Before.(*v1alpha1.CatalogSource).Status, a.After.(*v1alpha1.CatalogSource).Status
	fmt.Fprintf(b, "updateStatus %s (%s", a.Target, a.Cause.Reason)
	said := false
	for _, c := range after.Conditions {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		switch text := fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message); {
		case old != nil && *old == c || c.Reason == catalog.ReasonComplete || c.Reason == catalog.ReasonAsExpected:
		case c.Type == catalog.ConditionAvailable:
			require.Equal(t, c.Message, a.Cause.Message)
			said = true
			fmt.Fprintf(b, ") %s", text)
		default:
			if !said {
				said = true
				fmt.Fprintf(b, ": %s)", a.Cause.Message)
			}
			fmt.Fprintf(b, "\n  %s", text)
		}
	}
	if !said {
		fmt.Fprintf(b, ": %s)", a.Cause.Message)
	}
	for _, c := range before.Conditions {
		if meta.FindStatusCondition(after.Conditions, c.Type) == nil {
			fmt.Fprintf(b, "\n  no %s", c.Type)
		}
	}
	before.Conditions, after.Conditions = nil, nil
	if x, y := mustJSON(before), mustJSON(after); x != y {
		fmt.Fprintf(b, "\n  %s", y)
	}
	b.WriteByte('\n')
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func unready(pod *corev1.Pod) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(start.Add(time.Hour))
		}
	}
}

// silence lets one node be silent for a time, and comes back to rest.
func (h *graceHistory) silence(t *rapid.T) {
	node := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "node")
	hosts := slices.ContainsFunc(gathered(t, h.world).Pods.Items, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
	length := seconds(t, 1, 400, "silence")
	from := len(h.Events)
	require.NoError(t, h.Node(node).Fail())
	failed := h.Cluster.Now()
	h.run(t, min(length, 40*time.Second))
	since, silent := unknownSince(t, h.world, node)
	if rapid.Bool().Draw(t, "the controller restarts") {
		h.Driver = &fake.Driver{Cluster: h.Cluster, Controllers: h.Controllers, Events: h.Events}
	}
	if rest := failed.Add(length).Sub(h.Cluster.Now()); rest > 0 {
		h.run(t, rest)
	}
	at, what := podWrites(h.world, from)
	acts := hosts && silent && !h.Cluster.Now().Before(since.Add(h.grace))
	if acts {
		require.NotEmpty(t, what, "the grace is over")
		require.Equal(t, since.Add(h.grace), at[0], "%v", what)
		require.Equal(t, "create "+catalog.ReasonNodeUnreachable, what[0])
		serves := catalog.Assess(gathered(t, h.world)).Ready > 0
		require.Equal(t, !h.full || h.replicas == 2, serves, "it serves where a node can run the Pod")
		h.makeRoom(t)
	} else {
		require.Empty(t, what, "within the grace, or without a Pod")
	}
	require.NoError(t, h.Node(node).Heal())
	h.run(t, 10*time.Minute)
	at, what = podWrites(h.world, from)
	if !acts {
		require.Empty(t, what, "the node was back in time")
	}
	creates := slices.DeleteFunc(slices.Clone(what), func(s string) bool { return s != "create "+catalog.ReasonNodeUnreachable })
	require.Equal(t, acts, len(creates) == 1, "one Pod was lost, one replaces it: %v", what)
	require.LessOrEqual(t, len(creates), 1, "%v at %v", what, at)
	a := catalog.Assess(gathered(t, h.world))
	require.Equal(t, catalog.StateServing, a.State)
	require.Len(t, a.Pods, h.replicas)
}

// silence makes the node of the Pod silent for a time.
func silence(in *catalog.Input, d time.Duration) *corev1.Node {
	unready(in.Pods.Items[0])
	return setNode(in, corev1.ConditionUnknown, d)
}

func setNode(in *catalog.Input, status corev1.ConditionStatus, d time.Duration) *corev1.Node {
	for _, node := range in.Nodes.Items {
		if node.Name == in.Pods.Items[0].Spec.NodeName {
			readyOf(node).Status = status
			readyOf(node).LastTransitionTime = metav1.NewTime(in.Now.Add(-d))
			return node
		}
	}
	return nil
}

// readyOf returns the Ready condition of a Node.
func readyOf(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return &corev1.NodeCondition{}
}

func terminating(in *catalog.Input, d time.Duration) {
	in.Pods.Items[0].DeletionTimestamp = new(metav1.NewTime(in.Now.Add(-d)))
	in.Pods.Items[0].DeletionGracePeriodSeconds = new(int64(30))
}

func disrupted(in *catalog.Input) {
	in.Pods.Items[0].Status.Conditions = append(in.Pods.Items[0].Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"})
}

func waiting(in *catalog.Input, reason string) {
	unready(in.Pods.Items[0])
	in.Pods.Items[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

// edit changes the spec and the generation.
func edit(in *catalog.Input, change func(*v1alpha1.CatalogSourceSpec)) {
	change(&in.CatalogSource.Spec)
	in.CatalogSource.Generation++
}

// edited returns edit as a change of an input.
func edited(change func(*v1alpha1.CatalogSourceSpec)) func(*catalog.Input) {
	return func(in *catalog.Input) { edit(in, change) }
}

// addPod adds a copy of the first Pod with another name on the Node b.
func addPod(in *catalog.Input, name string, change func(*corev1.Pod)) {
	pod := in.Pods.Items[0].DeepCopy()
	pod.Name, pod.UID, pod.Spec.NodeName = name, "uid-"+in.Pods.Items[0].UID, "b"
	pod.CreationTimestamp = metav1.NewTime(in.Now.Add(-time.Minute))
	change(pod)
	in.Pods.Items = append(in.Pods.Items, pod)
}

func candidate(pod *corev1.Pod) {
	pod.Labels["olm.catalogSource"], pod.Labels["catalogsource.operators.coreos.com/update"] = "", "cool"
}

func polling(interval string) *v1alpha1.UpdateStrategy {
	return &v1alpha1.UpdateStrategy{RegistryPoll: &v1alpha1.RegistryPoll{RawInterval: interval}}
}

// pollAgo enables polls every 45 minutes, with the last poll some time ago.
func pollAgo(ago time.Duration, change func(*catalog.Input)) func(*catalog.Input) {
	return func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling("45m") })
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now.Add(-ago)))
		if change != nil {
			change(in)
		}
	}
}

// probe adds a candidate that polls and was created a minute ago.
func probe(change func(*corev1.Pod)) func(*catalog.Input) {
	return func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) {
			candidate(p)
			p.Annotations["olmcore/purpose"] = "poll"
			if change != nil {
				change(p)
			}
		})
	}
}

// hashV046 is the hash of cool's Pod as releases v0.42 to v0.46 made it.
const hashV046 = "az8Sdj7qplRNZwJ6scGZkG47Br6F4bLfZkoO0S"

// demo returns a CatalogSource whose hashes were taken from OLM.
func demo() *v1alpha1.CatalogSource {
	cs := cool()
	cs.Name = "demo"
	return cs
}

// first returns the objects that the first reconcile of a CatalogSource creates, by kind.
func first(t *testing.T, cs *v1alpha1.CatalogSource, namespace *corev1.Namespace, config catalog.Config) map[string]olmcore.Object {
	cs.UID, cs.Generation = "uid", 1
	namespace = namespace.DeepCopy()
	namespace.Name = cs.Namespace
	out := answer(t, emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: namespace, Config: config}))
	made := map[string]olmcore.Object{}
	for _, a := range out.Actions {
		if create, ok := a.(olmcore.Create); ok {
			made[create.Target.Kind+" "+create.Target.Name] = create.Object
			if create.Target.Kind == "Pod" {
				made["Pod"] = create.Object
			}
		}
	}
	return made
}

// emptyNamespace returns an input in which every list was read and is empty.
func emptyNamespace(in catalog.Input) catalog.Input {
	in.Pods, in.Services, in.ServiceAccounts = olmcore.Found[*corev1.Pod](), olmcore.Found[*corev1.Service](), olmcore.Found[*corev1.ServiceAccount]()
	in.NetworkPolicies = olmcore.Found[*networkingv1.NetworkPolicy]()
	in.Roles, in.RoleBindings = olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	in.PodDisruptionBudgets = olmcore.Found[*policyv1.PodDisruptionBudget]()
	return in
}

func limits(memory string) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
}

// answer returns the outcome of a valid input.
func answer(t require.TestingT, in catalog.Input) catalog.Outcome {
	out, err := catalog.Reconcile(in)
	require.NoError(t, err)
	return out
}

func result(in catalog.Input) (olmcore.Result, error) {
	out, err := catalog.Reconcile(in)
	return out.Result, err
}

func pod(name string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "olm", name
	return p
}

func servesOn(t *testing.T, w *world) string {
	for _, pod := range catalog.Assess(w.input(t)).Pods {
		if pod.Serves {
			return pod.Node
		}
	}
	require.Fail(t, "nothing serves")
	return ""
}

// requireSameAnswer checks that a Reader with an index by owner leads to the same outcome as one that lists
// everything.
func requireSameAnswer(t *testing.T, w *world) {
	snapshot, err := w.Cluster.Snapshot()
	require.NoError(t, err)
	in, err := catalog.Gather(t.Context(), snapshot, coolKey, w.config)
	require.NoError(t, err)
	in.Now = w.Cluster.Now()
	want := answer(t, w.input(t))
	got := answer(t, in)
	require.Equal(t, describe(t, want), describe(t, got))
}

// bystander returns an unmanaged Pod with the label of the catalog.
func bystander() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bystander", Namespace: "olm", Labels: map[string]string{"olm.catalogSource": "cool"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "quay.io/example/other:v1"}}},
	}
}

// podOf returns the first Pod of a CatalogSource.
func podOf(t *testing.T, cs *v1alpha1.CatalogSource, enforce string, config catalog.Config) *corev1.Pod {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pod-security.kubernetes.io/enforce": enforce}}}
	return first(t, cs, namespace, config)["Pod"].(*corev1.Pod)
}

// recorded returns an input in which the Pod that stays is recorded, if the decision deletes Pods that serve.
func recorded(t require.TestingT, in catalog.Input) catalog.Input {
	next := invariant.Clone(in)
	for range 3 { // a status may be written before
		isChanged := false
		for _, action := range answer(t, next).Actions {
			switch a := action.(type) {
			case olmcore.UpdateStatus:
				next.CatalogSource, isChanged = a.After.(*v1alpha1.CatalogSource), true
			case olmcore.Update:
				if a.Cause.Reason == catalog.ReasonPodKept {
					recordKept(&next, a.After)
					isChanged = true
				}
			}
		}
		if !isChanged {
			break
		}
	}
	after := invariant.Clone(in)
	after.CatalogSource.Annotations = next.CatalogSource.Annotations
	after.Pods.Items = next.Pods.Items
	return after
}

// recordKept replaces an object of an input by the written one.
func recordKept(in *catalog.Input, after olmcore.Object) {
	switch o := after.(type) {
	case *v1alpha1.CatalogSource:
		in.CatalogSource = o
	case *corev1.Pod:
		i := slices.IndexFunc(in.Pods.Items, func(p *corev1.Pod) bool { return p.Name == o.Name })
		in.Pods.Items[i] = o
	}
}
