// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/olmcore/olm/examples/internal/dryrun"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/internal/spelling"
	"github.com/olmcore/olm/olmcore"
)

// Kinds that commands look at.
var (
	subscriptions = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)
	installPlans  = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind)
	csvs          = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind)
	catalogs      = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind)
	groups        = operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind)
	deployments   = appsv1.SchemeGroupVersion.WithKind("Deployment")
	pods          = corev1.SchemeGroupVersion.WithKind("Pod")
)

// statusKinds are those that say where a Subscription stands, in the order in which they refer to each other.
var statusKinds = []schema.GroupVersionKind{subscriptions, installPlans, csvs, deployments, pods, groups, catalogs}

// resolutionKinds are those that a namespace is resolved from.
var resolutionKinds = []schema.GroupVersionKind{subscriptions, installPlans, csvs, groups, catalogs}

// readBy are the kinds that packages of the library read, those of OLM first.
func readBy(packages ...string) []schema.GroupVersionKind {
	kinds := slices.Clone(resolutionKinds)
	for _, k := range olmcore.Kinds() {
		reads := slices.ContainsFunc(packages, func(p string) bool { return slices.Contains(k.ReadBy, p) })
		if reads && !slices.Contains(kinds, k.GroupVersionKind) {
			kinds = append(kinds, k.GroupVersionKind)
		}
	}
	return kinds
}

// open reads the objects of some kinds from where the flags say. It prints on stderr which of them were not read, but
// for the optional kinds.
func (r *root) open(ctx context.Context, kinds []schema.GroupVersionKind, optional ...schema.GroupVersionKind) (*world.World, error) {
	told, done := progress(r.ErrOut)
	w, err := r.read(ctx, slices.Concat(kinds, optional), told)
	done()
	if err != nil {
		return nil, err
	}
	for _, gvk := range optional {
		delete(w.Unread, gvk.GroupKind())
	}
	for _, problem := range w.Problems {
		fmt.Fprintln(r.ErrOut, "warning: "+text.Line(problem, 500))
	}
	r.sayUnread(w)
	return w, r.chooseGlobalNamespace(ctx, w)
}

// sayUnread says on stderr what was not read, a line for each reason.
func (r *root) sayUnread(w *world.World) {
	if r.tellsUnread {
		return
	}
	byReason := map[string][]string{}
	for kind, why := range w.Unread {
		byReason[why] = append(byReason[why], world.Resource(kind))
	}
	var lines []string
	for why, names := range byReason {
		slices.Sort(names)
		lines = append(lines, fmt.Sprintf("not read: %s: %s", strings.Join(names, ", "), text.Line(why, 500)))
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(r.ErrOut, line)
	}
}

func (r *root) read(ctx context.Context, kinds []schema.GroupVersionKind, told func(string)) (*world.World, error) {
	if len(r.files) > 0 {
		w, err := world.Files{Names: r.files, Stdin: r.In, Complete: r.complete, Now: r.clock(), Kinds: kinds, Catalogs: &r.catalogs, Progress: told}.Load()
		if err == nil {
			w.Namespace = *r.config.Namespace
		}
		return w, err
	}
	if raw, err := r.config.ToRawKubeConfigLoader().RawConfig(); err == nil && clientcmdapi.IsConfigEmpty(&raw) && *r.config.APIServer == "" && !inCluster() {
		if path := os.Getenv("KUBECONFIG"); path != "" {
			return nil, fmt.Errorf("which cluster to use is not known: KUBECONFIG is %s, and no file of it names a cluster. Set KUBECONFIG or --kubeconfig, or name files with -f", path)
		}
		return nil, errors.New("which cluster to use is not known: set KUBECONFIG or --kubeconfig, or name files with -f")
	}
	config, err := r.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("%w (or name files with -f)", err)
	}
	namespace := ""
	if !r.all {
		if namespace, _, err = r.config.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, err
		}
	}
	return world.Cluster{Config: config, Namespace: namespace, Kinds: kinds, Progress: told, Clock: r.clock}.Load(ctx)
}

// inCluster reports whether the command runs in a Pod.
func inCluster() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

// chooseGlobalNamespace sets the namespace whose catalogs all namespaces see, unless the flag gives it: the one that
// the Subscriptions of most namespaces name beside their own. It prints the choice on stderr if they name several.
func (r *root) chooseGlobalNamespace(ctx context.Context, w *world.World) error {
	if r.catalogs.GlobalNamespace != "" || !w.Holds(subscriptions.GroupKind(), w.Namespace) {
		return nil
	}
	subs, err := olmcore.List[*v1alpha1.Subscription](ctx, w, w.Namespace, nil)
	namespace, others := dryrun.MostNamed(subs)
	r.catalogs.GlobalNamespace = namespace
	if len(others) > 0 {
		const format = "Catalogs of namespace %s are treated as global. Subscriptions also name: %s. " +
			"If one of these has the global catalogs, set --global-catalog-namespace"
		fmt.Fprintln(r.ErrOut, text.Line(fmt.Sprintf(format, namespace, strings.Join(others, ", ")), 500))
	}
	return err
}

// subscriptions are those that the flags and the names choose, sorted by namespace and name. A name that no
// Subscription has is an error that says which one may be meant.
func (r *root) subscriptions(ctx context.Context, w *world.World, names []string) ([]*v1alpha1.Subscription, error) {
	if err := w.Need(subscriptions); err != nil {
		return nil, err
	}
	selector := labels.Everything()
	if r.selector != "" && len(names) > 0 {
		return nil, errors.New("names and --selector exclude each other")
	}
	if r.selector != "" {
		var err error
		if selector, err = labels.Parse(r.selector); err != nil {
			return nil, fmt.Errorf("--selector: %w", err)
		}
	}
	all, err := olmcore.List[*v1alpha1.Subscription](ctx, w, w.Namespace, nil)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	var chosen []*v1alpha1.Subscription
	for _, s := range all {
		isNamed := slices.Contains(names, s.Name)
		found[s.Name] = found[s.Name] || isNamed
		if (isNamed || len(names) == 0) && selector.Matches(labels.Set(s.Labels)) {
			chosen = append(chosen, s)
		}
	}
	for _, name := range names {
		if !found[name] {
			return nil, unknown("Subscription", name, w.Namespace, namesOf(all))
		}
	}
	return chosen, nil
}

// unknown is the error for a name that is none of some objects.
func unknown(what, name, namespace string, known []string) error {
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Errorf("there is no %s %q%s: did you mean %q?", what, name, where, near)
	}
	return fmt.Errorf("there is no %s %q%s", what, name, where)
}

func namesOf[T olmcore.Object](objects []T) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.GetName()
	}
	return names
}
