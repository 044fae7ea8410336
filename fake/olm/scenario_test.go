// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
	"github.com/olmcore/olm/subscription/resolution"
)

// workers are two instances of the controllers of Subscriptions and plans, each with a cache that is as old as the last
// "read", and without a driver: a story says who does what when.
type workers struct {
	world
	of map[string]*worker
	// listsAgain: the resolver reads the Subscriptions itself, some time after the controller did.
	listsAgain bool
	// image: bundles come as images.
	image bool
}

type worker struct {
	olm  *olm.OLM
	view *fake.View
	all  []controller.Controller
	// byHand are the controllers that work only when the story says so.
	byHand []controller.Controller
}

func (w *workers) setup(s *scenario.World) error {
	w.world = world{ctx: context.Background(), cluster: s.Cluster, driver: s.Driver, heads: map[string]int{"alpha": 1, "beta": 1}}
	w.listsAgain, w.image, w.of = false, false, map[string]*worker{}
	for _, name := range []string{"one", "two"} {
		o := &olm.OLM{Options: controllers.Options{
			Resolve: w.answer, Sweeps: true,
			CatalogsOf: func(context.Context, olmcore.Reader, string) (*subscription.Catalogs, error) { return nil, nil },
		}}
		k := &worker{olm: o, view: s.Cluster.View(name)}
		for _, c := range o.Controllers() {
			switch c.Name {
			case controllers.Subscription, controllers.InstallPlan, controllers.Sweep:
				k.all = append(k.all, c)
			case controllers.CSV, controllers.CSVSweep:
				k.byHand = append(k.byHand, c)
			}
		}
		w.of[name] = k
	}
	// "settle" and "run" are worker one's with a cache that is never behind.
	s.Driver.Controllers = w.of["one"].all
	at := olmcore.Timestamp(s.Cluster.Now())
	if err := s.Cluster.Load(&operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		Status:     operatorsv1.OperatorGroupStatus{Namespaces: []string{namespace}, LastUpdated: &at},
	}); err != nil {
		return err
	}
	return s.Cluster.Create(
		&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"}, Spec: v1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "x:1"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "poke"}},
	)
}

func (w *workers) answer(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	if w.listsAgain {
		subs, err := olmcore.List[*v1alpha1.Subscription](ctx, w.cluster, request.Namespace, nil)
		if err != nil {
			return olmcore.Resolution{}, err
		}
		request.Subscriptions = nil
		for _, s := range subs {
			request.Subscriptions = append(request.Subscriptions, olmcore.FingerprintOf(s))
		}
	}
	resolved, err := w.resolve(ctx, r, request)
	for i := range resolved.Operators {
		if w.image {
			resolved.Operators[i].Bundle = olmcore.Bundle{Image: "registry.example.com/" + resolved.Operators[i].Name}
		}
	}
	return resolved, err
}

// solve has the real solver answer both workers, from a catalog of what is published.
func (w *workers) solve() error {
	content := map[string]resolution.Package{}
	for pkg, head := range w.heads {
		entries := []resolution.ChannelEntry{{Name: csvName(pkg, 1)}}
		for v := 2; v <= head; v++ {
			entries = append(entries, resolution.ChannelEntry{Name: csvName(pkg, v), Replaces: csvName(pkg, v-1)})
		}
		content[pkg] = packageOf(pkg, entries...)
	}
	catalogs, err := catalogsOf(content)
	var options controllers.Options
	catalogs.Serve(&options)
	for _, k := range w.of {
		k.olm.Resolve = options.Resolve
	}
	return err
}

func (w *workers) commands() map[string]scenario.Command {
	type args = []string
	return map[string]scenario.Command{
		// read WORKER: its cache becomes that of now.
		"read": func(_ *scenario.World, a args, _ []byte) (string, error) { w.of[a[0]].view.Sync(); return "", nil },
		// forget WORKER: a restart.
		"forget": func(_ *scenario.World, a args, _ []byte) (string, error) { w.of[a[0]].olm.Forget(); return "", nil },
		// work WORKER CONTROLLER [NAME]: one pass, from its cache; of one object when it is named.
		"work": func(_ *scenario.World, a args, _ []byte) (string, error) { return w.work(a[0], a[1], a[2:]...) },
		// subscribe NAME APPROVAL
		"subscribe": func(_ *scenario.World, a args, _ []byte) (string, error) {
			return "", w.subscribe(a[0], v1alpha1.Approval(a[1]))
		},
		// publish PACKAGE VERSION
		"publish": func(_ *scenario.World, a args, _ []byte) (string, error) {
			for _, k := range w.of {
				k.olm.CatalogsChanged()
			}
			version, err := strconv.Atoi(a[1])
			w.heads[a[0]] = version
			return "", err
		},
		// reject KIND: the API server rejects every write of the kind. allow: it accepts all writes again.
		"reject": func(s *scenario.World, a args, _ []byte) (string, error) {
			s.Cluster.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
				if target.Kind == a[0] {
					return apierrors.NewInternalError(errors.New("failed calling webhook"))
				}
				return nil
			}
			return "", nil
		},
		"allow": func(s *scenario.World, _ args, _ []byte) (string, error) { s.Cluster.Authorize = nil; return "", nil },
		// approve: every plan that waits for it.
		"approve": func(*scenario.World, args, []byte) (string, error) { return "", w.approveAll() },
		// resolver lists-again|solves
		"resolver": func(_ *scenario.World, a args, _ []byte) (string, error) {
			if w.listsAgain = a[0] == "lists-again"; a[0] == "solves" {
				return "", w.solve()
			}
			return "", nil
		},
		// images: bundles come as images that have to be unpacked.
		"images": func(*scenario.World, args, []byte) (string, error) {
			w.image = true
			for _, k := range w.of {
				k.olm.InstallPlan = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"}
			}
			return "", nil
		},
		"finish-jobs": w.finishJobs,
		"poke": func(*scenario.World, args, []byte) (string, error) {
			return "", fake.Edit(w.cluster, namespace, "poke", func(c *corev1.ConfigMap) { c.Data = map[string]string{"at": w.cluster.ResourceVersion()} })
		},
		"plans": func(*scenario.World, args, []byte) (string, error) { return w.showPlans(), nil },
		"subs":  func(*scenario.World, args, []byte) (string, error) { return w.showSubscriptions(), nil },
		"audit": func(*scenario.World, args, []byte) (string, error) { return w.audit() },
	}
}

func (w *workers) work(name, of string, only ...string) (string, error) {
	k := w.of[name]
	var lines []string
	for _, c := range slices.Concat(k.all, k.byHand) {
		if c.Name != of {
			continue
		}
		keys, err := c.Keys(w.ctx, k.view)
		if err != nil {
			return "", err
		}
		for _, key := range keys {
			if len(only) > 0 && !slices.Contains(only, key.Name) {
				continue
			}
			result, err := c.Reconcile(w.ctx, k.view, key, w.cluster.Now(), nil)
			if err != nil {
				return "", err
			}
			for _, d := range result.Diagnostics {
				lines = append(lines, controller.Event{Controller: name, Key: key, Diagnostic: &d}.String())
			}
			for _, a := range result.Actions {
				err := w.cluster.Do(w.ctx, a)
				lines = append(lines, controller.Event{Controller: name, Key: key, Action: a, Err: err}.String())
			}
		}
	}
	return strings.Join(lines, "\n"), nil
}

// finishJobs ends every Job that runs: with a failure when one is named.
func (w *workers) finishJobs(_ *scenario.World, a []string, _ []byte) (string, error) {
	ended := 0
	for _, o := range w.cluster.Objects() {
		if key := olmcore.KeyOf(o); key.Kind == "Job" && o.GetDeletionTimestamp() == nil {
			m, err := olmcore.ToMap(o)
			if err != nil {
				return "", err
			}
			if status, _ := m["status"].(map[string]any); status["conditions"] != nil {
				continue
			}
			if err := w.cluster.Job(key.Namespace, key.Name).Finish(strings.Join(a, " ")); err != nil {
				return "", err
			}
			ended++
		}
	}
	return fmt.Sprintf("%d Jobs", ended), nil
}

// showPlans prints the plans: numbered by their generation, as their names are hashes.
func (w *workers) showPlans() string {
	var lines []string
	plans := w.plans()
	slices.SortStableFunc(plans, func(a, b *v1alpha1.InstallPlan) int { return a.Spec.Generation - b.Spec.Generation })
	for _, p := range plans {
		line := fmt.Sprintf("%s generation %d %s approved=%v %s: %s", p.Name, p.Spec.Generation, p.Spec.Approval, p.Spec.Approved,
			orNothing(string(p.Status.Phase)), strings.Join(p.Spec.ClusterServiceVersionNames, " "))
		var owners, keys []string
		for _, ref := range p.OwnerReferences {
			s := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, ref.Name)
			if s == nil || s.UID != ref.UID {
				ref.Name += "(stale)"
			}
			owners = append(owners, ref.Name)
		}
		for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
			if key, ok := strings.CutPrefix(key, olmcore.ComponentLabelPrefix); ok {
				keys = append(keys, key)
			}
		}
		lines = append(lines, line+"; owners "+strings.Join(owners, " ")+"; labels "+strings.Join(keys, " "))
	}
	return strings.Join(lines, "\n")
}

func (w *workers) showSubscriptions() string {
	subs, err := olmcore.List[*v1alpha1.Subscription](w.ctx, w.cluster, namespace, nil)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, s := range subs {
		plan := "nothing"
		if s.Status.InstallPlanRef != nil {
			plan = s.Status.InstallPlanRef.Name
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s with %s, has %s", s.Name, orNothing(string(s.Status.State)), orNothing(s.Status.CurrentCSV), plan, orNothing(s.Status.InstalledCSV)))
	}
	return strings.Join(lines, "\n")
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func (w *workers) audit() (string, error) {
	in, err := subscription.Gather(w.ctx, w.cluster, namespace, subscription.Config{})
	if err != nil {
		return "", err
	}
	in.Now = w.cluster.Now()
	findings, err := audit.Find(in)
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", f.Severity, f.Target, f.Reason, f.Message))
	}
	return strings.Join(lines, "\n"), err
}

func TestScenarios(t *testing.T) {
	w := &workers{}
	require.NoError(t, scenario.RunAll("testdata/*.txt", scenario.Config{Setup: w.setup, Commands: w.commands()}))
}
