// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/csv/operatorcondition"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/installplan"
	plansweep "github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription/component"
)

// pass is one reconcile of a key: what it is told, and what it remembers for the next.
type pass struct {
	key  types.NamespacedName
	now  time.Time
	last olmcore.LastResults
	known
}

// known is the memory about a key besides that about namespaces.
type known struct {
	checkpoint *olmcore.Checkpoint
	address    string      // what the gRPC client of a CatalogSource shall dial
	judged     *csv.Judged // of a ClusterServiceVersion
	inspected  *serving.Memory
	rest       *sweep.Rest
	swept      time.Time           // when that last found nothing
	unpacked   *installplan.Memory // of the bundles of an InstallPlan
	// isAssessed is true once the Diagnostics of Assess were reported. See reportOnce.
	isAssessed bool
}

// reportOnce adds the Diagnostics of Assess that a Result lacks, in the first reconcile of a key after a start.
// Reconcile reports some of them only together with writes, and a manager that takes over a cluster of OLM may have
// nothing to write. If a list was not read yet, the next reconcile assesses the key again.
func (p *pass) reportOnce(result *olmcore.Result, assess func() ([]olmcore.Diagnostic, error)) error {
	if p.isAssessed {
		return nil
	}
	diagnostics, err := assess()
	if err != nil {
		return err
	}
	p.isAssessed = !slices.ContainsFunc(diagnostics, func(d olmcore.Diagnostic) bool {
		return d.Reason == csv.ReasonNotObserved || d.Reason == csv.ReasonGroupNotReady
	})
	for _, d := range diagnostics {
		if !slices.Contains(result.Diagnostics, d) {
			result.Diagnostics = append(result.Diagnostics, d)
		}
	}
	return nil
}

// remembering hands a reconcile what it remembered of the key last time, and forgets keys whose object is gone.
func (s *Set) remembering(reconcile func(context.Context, olmcore.Reader, *pass) (olmcore.Result, error)) controller.ReconcileFunc {
	memory := &memory[types.NamespacedName, known]{}
	s.known = append(s.known, memory)
	return func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
		p := &pass{key: key, now: now, last: last, known: memory.get(key)}
		result, err := reconcile(ctx, r, p)
		switch {
		case olmcore.Classify(err) == olmcore.Gone || p.known == (known{}):
			memory.drop(key)
		case err == nil:
			memory.set(key, p.known)
		}
		if err != nil {
			return olmcore.Result{}, err
		}
		return withoutDoomed(ctx, r, result), nil
	}
}

// catalog reconciles a CatalogSource. Of one that belongs to another shard, a global one, only the content is needed.
func (s *Set) catalog(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	config := s.options.Catalog
	config.GlobalCatalogNamespace = cmp.Or(config.GlobalCatalogNamespace, s.options.GlobalNamespace)
	in, err := catalog.Gather(ctx, r, p.key, config)
	if err != nil {
		if olmcore.Classify(err) == olmcore.Gone {
			gone := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}}
			s.connection(catalog.Input{Now: p.now, CatalogSource: gone}, "")
		}
		return olmcore.Result{}, err
	}
	template, err := s.template(in.CatalogSource, p.now)
	ours := s.options.ours(p.key.Namespace)
	if err != nil || ours && changesSpec(template.Actions) {
		return template, err // the Pods follow the image that is served next
	}
	in.Now, in.LastRun, in.Checkpoint = p.now, p.last, p.checkpoint
	out, err := s.connected(in, p)
	if err != nil {
		return olmcore.Result{}, err
	}
	if !ours {
		return olmcore.Result{RequeueAfter: out.RequeueAfter}, nil
	}
	p.checkpoint = out.Checkpoint
	if s.options.Fingerprint == nil {
		s.namespaces.outdate(out.Notify.ResolveNamespaces...)
	}
	return withTemplate(out.Result, template, p.key), nil
}

// connected decides about a CatalogSource whose client dials what it shall dial.
func (s *Set) connected(in catalog.Input, p *pass) (catalog.Outcome, error) {
	if p.address != "" {
		in.Connection = s.connection(in, p.address)
	}
	out, err := catalog.Reconcile(in)
	if err != nil {
		return out, err
	}
	asked := out.Connection.Verb != catalog.ConnectionKeep
	if asked {
		s.ask(Catalog, p.key, out.Connection)
	}
	if asked && s.options.Connection != nil {
		p.address = out.Connection.Address
	}
	if asked || p.address == "" {
		in.Connection = s.connection(in, p.address)
	}
	if asked && s.options.Connection != nil {
		return catalog.Reconcile(in)
	}
	return out, nil
}

// template makes spec.image follow the image template of a CatalogSource.
func (s *Set) template(cs *v1alpha1.CatalogSource, now time.Time) (olmcore.Result, error) {
	if s.options.KubernetesVersion == "" || s.options.IgnoreImageTemplates {
		return olmcore.Result{}, nil
	}
	return catalog.Template(catalog.TemplateInput{Now: now, CatalogSource: cs, ServerVersion: s.options.KubernetesVersion})
}

func changesSpec(actions []olmcore.Action) bool {
	return slices.ContainsFunc(actions, func(a olmcore.Action) bool { _, ok := a.(olmcore.Update); return ok })
}

// withTemplate adds the status that a template asks for, unless the CatalogSource is written already: one object is
// written once.
func withTemplate(r, template olmcore.Result, key types.NamespacedName) olmcore.Result {
	written := slices.ContainsFunc(r.Actions, func(a olmcore.Action) bool {
		_, target, _ := a.Describe()
		return target.GVK() == catalogKind && target.Namespace == key.Namespace && target.Name == key.Name
	})
	if written {
		return r
	}
	r.Actions = append(r.Actions, template.Actions...)
	r.Diagnostics = append(r.Diagnostics, template.Diagnostics...)
	return r
}

// planConfig is the configuration of plans, which shares the global namespace.
func (o *Options) planConfig() installplan.Config {
	config := o.InstallPlan
	config.GlobalNamespace = cmp.Or(config.GlobalNamespace, o.globalNamespace())
	return config
}

// CSVConfig returns the configuration of ClusterServiceVersions. Its PackageServerNamespaces also contain the namespace
// of the global catalogs and that of OLM, unless the list is empty and not nil.
func (o *Options) CSVConfig() csv.Config {
	config := o.CSV
	if config.PackageServerNamespaces != nil && len(config.PackageServerNamespaces) == 0 {
		return config
	}
	config.PackageServerNamespaces = slices.Concat(config.PackageServerNamespaces, []string{o.globalNamespace(), o.olmNamespace()})
	return config
}

// olmNamespace returns the namespace in which OLM runs. Pull Secrets are copied from it.
func (o *Options) olmNamespace() string {
	return cmp.Or(o.InstallPlan.OLMNamespace, installplan.DefaultOLMNamespace)
}

func (s *Set) connection(in catalog.Input, address string) *catalog.Connection {
	if s.options.Connection == nil {
		return nil
	}
	return s.options.Connection(in, address)
}

func (s *Set) installPlan(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := installplan.Gather(ctx, r, p.key, s.options.planConfig())
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.Checkpoint, in.Unpacked = p.now, p.last, p.checkpoint, p.unpacked
	out, err := installplan.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	for _, change := range out.SchemaChanges {
		s.ask(InstallPlan, p.key, change)
	}
	if s.options.Judge != nil && len(out.SchemaChanges) > 0 {
		judged, err := s.options.Judge(ctx, r, out.SchemaChanges)
		if err != nil {
			return olmcore.Result{}, err
		}
		in.CustomResources, in.Unpacked = olmcore.Found(judged...), out.Unpacked
		if out, err = installplan.Reconcile(in); err != nil {
			return olmcore.Result{}, err
		}
	}
	plans := planner{Set: s, reader: r, namespace: p.key.Namespace, now: p.now}
	for _, lookup := range out.LostBundles {
		if _, err := plans.unpack(ctx, lookup, &out.Result); err != nil {
			return olmcore.Result{}, err
		}
	}
	p.checkpoint, p.unpacked = out.Checkpoint, out.Unpacked
	return out.Result, nil
}

func (s *Set) sweep(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := plansweep.Gather(ctx, r, p.key.Namespace, s.options.planConfig())
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.Checkpoint = p.now, p.checkpoint
	out, err := plansweep.Reconcile(in)
	p.checkpoint = out.Checkpoint
	return out.Result, err
}

func groupOf(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := operatorgroup.Gather(ctx, r, p.key)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.Checkpoint = p.now, p.checkpoint
	out, err := operatorgroup.Reconcile(in)
	p.checkpoint = out.Checkpoint
	return out.Result, err
}

func (s *Set) csv(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := csv.Gather(ctx, r, p.key, s.options.CSVConfig())
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.KubernetesVersion = p.now, p.last, s.options.KubernetesVersion
	in.Checkpoint, in.Judged, in.Inspected = p.checkpoint, p.judged, p.inspected
	out, err := csv.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	if len(out.Certificates) > 0 {
		if out, err = p.issue(ctx, r, s, in, out); err != nil {
			return olmcore.Result{}, err
		}
	}
	for _, kind := range out.Operands {
		s.ask(CSV, p.key, kind)
	}
	c := in.ClusterServiceVersion
	if !c.IsCopied() && c.DeletionTimestamp == nil {
		err = p.reportOnce(&out.Result, func() ([]olmcore.Diagnostic, error) {
			assessed, err := csv.Assess(in)
			return assessed.Diagnostics, err
		})
		if err != nil {
			return olmcore.Result{}, err
		}
	}
	p.checkpoint, p.judged, p.inspected = out.Checkpoint, out.Judged, out.Inspected
	return out.Result, nil
}

func (s *Set) condition(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := operatorcondition.Gather(ctx, r, p.key)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.Checkpoint = p.now, p.checkpoint
	out, err := operatorcondition.Reconcile(in)
	p.checkpoint = out.Checkpoint
	return out.Result, err
}

func (s *Set) copies(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := copies.Gather(ctx, r, p.key, s.options.Copies)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.Checkpoint = p.now, p.last, p.checkpoint
	out, err := copies.Reconcile(in)
	p.checkpoint = out.Checkpoint
	return out.Result, err
}

func (s *Set) config(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := copies.GatherConfig(ctx, r, p.key, s.options.Copies)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.Checkpoint = p.now, p.checkpoint
	out, err := copies.ReconcileConfig(in)
	p.checkpoint = out.Checkpoint
	return out.Result, err
}

func permissionsOf(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := permissions.Gather(ctx, r, p.key)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.Checkpoint = p.now, p.last, p.checkpoint
	out, err := permissions.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	p.checkpoint = out.Checkpoint
	if in.HasTargets() {
		err = p.reportOnce(&out.Result, func() ([]olmcore.Diagnostic, error) { return permissions.Assess(in) })
	}
	return out.Result, err
}

// sweepPace is how often a cluster is swept at most in which nothing was left behind. An object counts as left behind
// when it is ten minutes old.
const sweepPace = 10 * time.Second

func (s *Set) sweepCSVs(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	age := p.now.Sub(p.swept)
	if age >= 0 && age < sweepPace {
		return olmcore.Result{RequeueAfter: sweepPace - age}, nil
	}
	in, err := sweep.Gather(ctx, r, s.options.CSV.Cleanup, p.rest)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.Checkpoint = p.now, p.checkpoint
	out, err := sweep.Reconcile(in)
	p.checkpoint, p.rest, p.swept = out.Checkpoint, p.rest.After(in, out), time.Time{}
	if err == nil && out.Empty() {
		p.swept = p.now
	}
	return out.Result, err
}

func operatorOf(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	in, err := component.Gather(ctx, r, p.key.Name)
	if err != nil {
		return olmcore.Result{}, err
	}
	return component.Reconcile(in)
}
