// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// runner collects what is done and said, by object.
type runner struct {
	ctx     context.Context
	cluster *fake.Cluster
	// reader is what decisions look at: the input or, with --settle, the cluster.
	reader  olmcore.Reader
	results map[olmcore.Key]*Result
	// global is the namespace whose catalogs all namespaces see.
	global string
	// named are the Subscriptions of the namespaces that were looked at.
	named map[string]*namespaceNames
	// issued: certificates were asked for.
	issued bool
	// catalogs answer what Subscriptions ask for, when there are any.
	catalogs *Catalogs
	// separatePlans is Options.SeparatePlans.
	separatePlans bool
	// secrets are not printed.
	secrets secrets
}

// optionsOf returns the options of the controllers, which also count for what is assessed.
func optionsOf(r *runner) controllers.Options {
	o := controllers.Options{KubernetesVersion: NewestKubernetes, IgnoreImageTemplates: true, GlobalNamespace: r.global, Live: true}
	o.InstallPlan.SeparatePlans = r.separatePlans
	return o
}

// newOLM returns the controllers and has their requests collected.
func (r *runner) newOLM(asked func(string, types.NamespacedName, any)) (*olm.OLM, error) {
	o := &olm.OLM{Options: optionsOf(r), Disconnected: true}
	o.Asked, o.CatalogsOf = asked, r.known
	if len(r.catalogs.Content) > 0 {
		o.Resolve, o.Fingerprint = r.resolve, r.fingerprint
	}
	if sources, err := olmcore.List[*v1alpha1.CatalogSource](r.ctx, r.cluster, "", nil); err != nil || len(sources) == 0 {
		return o, err
	}
	nodes, err := olmcore.Observe[*corev1.Node](r.ctx, r.reader, "", nil)
	o.Catalog.IgnoreNodes = len(nodes.Items) == 0
	return o, err
}

// NewestKubernetes satisfies every minKubeVersion: objects do not tell the version of their API server.
const NewestKubernetes = "v1.999.0"

// look reconciles every key of the input once and runs nothing.
func (r *runner) look(input *observed) error {
	o, err := r.newOLM(r.asked)
	if err != nil {
		return err
	}
	o.Issuer = controllers.NoIssuer{} // the requests are printed
	guess, err := r.newOLM(nil)
	if err != nil {
		return err
	}
	guesses := guess.Controllers()
	for i, c := range tolerant(o.Controllers()) {
		err := decide(r, c, input, func(report controller.Report) error {
			for _, e := range events(report) {
				if err := r.add(e); err != nil {
					return err
				}
				if e.Diagnostic != nil && e.Diagnostic.Reason == reasonUndecided {
					// All kinds that were not read are reported, not only the first one.
					input.guessing = true
					_, _ = guesses[i].Reconcile(r.ctx, input, report.Key, r.cluster.Now(), nil)
					input.guessing = false
				}
			}
			r.requeue(c.Name, report.Key, report.Result.RequeueAfter)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := r.explain(input); err != nil {
		return err
	}
	return r.audit()
}

// decide reconciles each key of a controller once without running the actions, and calls add with each Report.
func decide(r *runner, c controller.Controller, reader olmcore.Reader, add func(controller.Report) error) error {
	keys, err := c.Keys(r.ctx, r.cluster)
	if err != nil {
		return err
	}
	one := &controller.Runner{Controller: c, Reader: reader}
	for _, key := range keys {
		report, err := one.RunOnce(r.ctx, key, r.cluster.Now())
		if err != nil {
			return err
		}
		if err := add(report); err != nil {
			return err
		}
	}
	return nil
}

// events returns the contents of a Report as Events, as a fake.Driver records them.
func events(report controller.Report) (list []controller.Event) {
	add := func(e controller.Event) {
		e.Controller, e.Key = report.Controller, report.Key
		list = append(list, e)
	}
	for _, a := range report.Result.Actions {
		add(controller.Event{Action: a})
	}
	for i := range report.Result.Transitions {
		add(controller.Event{Transition: &report.Result.Transitions[i]})
	}
	for i := range report.Result.Diagnostics {
		add(controller.Event{Diagnostic: &report.Result.Diagnostics[i]})
	}
	return list
}

// settle runs everything until nothing is left to do.
func (r *runner) settle(advance time.Duration) (*Report, error) {
	if nodes, err := olmcore.List[*corev1.Node](r.ctx, r.cluster, "", nil); err != nil {
		return nil, err
	} else if len(nodes) == 0 {
		if err := r.cluster.Node("simulated").Create(nil); err != nil {
			return nil, err
		}
	}
	o, err := r.newOLM(r.asked)
	if err != nil {
		return nil, err
	}
	if err := r.explain(r.cluster); err != nil {
		return nil, err
	}
	d := &fake.Driver{Cluster: r.cluster, Controllers: tolerant(o.Controllers())}
	if err := d.RunUntilIdle(r.ctx, advance); err != nil {
		return nil, err
	}
	for _, e := range d.Events {
		if err := r.add(e); err != nil {
			return nil, err
		}
	}
	if err := r.await(); err != nil {
		return nil, err
	}
	if err := r.audit(); err != nil {
		return nil, err
	}
	all := r.report()
	if r.issued {
		all.Simulated = []string{"the certificates: everybody can compute their keys, so use them nowhere"}
	}
	for _, o := range r.cluster.Objects() {
		m, err := olmcore.ToMap(o)
		if err != nil {
			return nil, err
		}
		if m["kind"] == "Secret" {
			r.secrets.hide(m)
		}
		all.World = append(all.World, m)
	}
	return all, nil
}

// await reconciles every key once more after everything ran, and adds the deadlines and the bundles that are waited
// for.
func (r *runner) await() error {
	o, err := r.newOLM(nil)
	if err != nil {
		return err
	}
	for _, c := range tolerant(o.Controllers()) {
		err := decide(r, c, r.cluster, func(report controller.Report) error {
			r.requeue(c.Name, report.Key, report.Result.RequeueAfter)
			for _, e := range events(report) {
				if r.isNotUnpacked(e) { // the namespace was resolved again, which replaced its answers
					r.noteNotUnpacked(e)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reasonUndecided stands for what cannot be decided, as a kind was not read.
const reasonUndecided = "Undecided"

// tolerant makes controllers report an invalid input, and one that lacks kinds which were not read, as a Diagnostic.
// The error of one object then does not hide the others.
func tolerant(all []controller.Controller) []controller.Controller {
	for i := range all {
		c := &all[i]
		reconcile := c.Reconcile
		c.Reconcile = func(
			ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
		) (olmcore.Result, error) {
			found, err := reconcile(ctx, r, key, now, last)
			reason := "InvalidInput"
			if errors.Is(err, olmcore.ErrNotRead) {
				reason = reasonUndecided
			} else if !errors.Is(err, olmcore.ErrInvalidInput) {
				return found, err
			}
			return olmcore.Result{Diagnostics: []olmcore.Diagnostic{{
				Severity: olmcore.Error, Reason: reason, Message: err.Error(),
				Target: olmcore.Ref{APIVersion: c.Kinds[0].Group, Kind: c.Kinds[0].Kind, Namespace: key.Namespace, Name: key.Name},
			}}}, nil
		}
	}
	return all
}

// add files an event under its object.
func (r *runner) add(e controller.Event) error {
	switch {
	case e.Action != nil:
		record, err := olmcore.RecordOf(e.Action)
		if err != nil {
			return err
		}
		if err := r.secrets.hideIn(&record); err != nil {
			return err
		}
		about := r.about(e, record.Target)
		about.Actions = append(about.Actions, record)
		if update, ok := e.Action.(olmcore.UpdateStatus); ok && record.Target.Kind == about.Kind && record.Target.Name == about.Name {
			about.Status = status{update.After}
		}
		if e.Err != nil {
			about.say(olmcore.Diagnostic{
				Severity: olmcore.Warning, Reason: "ActionFailed", Message: e.Err.Error(), Target: record.Target,
			})
		}
	case e.Transition != nil:
		about := r.about(e, e.Transition.Target)
		about.Transitions = append(about.Transitions, *e.Transition)
	case r.isNotUnpacked(e):
		r.noteNotUnpacked(e)
	case e.Diagnostic != nil && isUndecided(e.Diagnostic.Reason):
		r.undecided(e)
	case e.Diagnostic != nil:
		r.about(e, e.Diagnostic.Target).say(*e.Diagnostic)
	}
	return nil
}

// isNotUnpacked reports whether an event says that a bundle of a catalog in the input must be unpacked first.
func (r *runner) isNotUnpacked(e controller.Event) bool {
	return e.Diagnostic != nil && e.Diagnostic.Reason == create.ReasonBundleNotUnpacked && len(r.catalogs.Content) > 0
}

// noteNotUnpacked adds the Note to the answer that an event is about, once for all bundles.
func (r *runner) noteNotUnpacked(e controller.Event) {
	if about := r.about(e, e.Diagnostic.Target); about.Resolution != nil {
		about.Resolution.Note = notUnpacked
	}
}

// isUndecided reports whether a diagnostic says that something was not read. The report names each such kind once.
func isUndecided(reason string) bool {
	return slices.Contains([]string{reasonUndecided, catalog.ReasonNotRead, csv.ReasonNotObserved, sweep.ReasonNotRead}, reason)
}

// undecided marks the results of a key.
func (r *runner) undecided(e controller.Event) {
	if e.Controller != controllers.Subscription {
		r.result(kindOf[e.Controller], e.Key).Undecided = true
		return
	}
	for _, s := range r.subscriptions(e.Key.Namespace) {
		r.result(v1alpha1.SubscriptionKind, types.NamespacedName{Namespace: s.Namespace, Name: s.Name}).Undecided = true
	}
}

// about returns the result that an event belongs to: that of the reconciled
// object; in a namespace of Subscriptions that of the Subscription concerned.
func (r *runner) about(e controller.Event, target olmcore.Ref) *Result {
	if e.Controller != controllers.Subscription {
		return r.result(kindOf[e.Controller], e.Key)
	}
	names := r.namesIn(e.Key.Namespace)
	name := cmp.Or(e.Key.Name, names.first)
	switch target.Kind {
	case v1alpha1.SubscriptionKind:
		name = target.Name
	case v1alpha1.InstallPlanKind:
		name = cmp.Or(names.ofPlan[target.Name], name)
	case v1alpha1.ClusterServiceVersionKind:
		name = cmp.Or(names.ofCSV[target.Name], name)
	}
	return r.result(v1alpha1.SubscriptionKind, types.NamespacedName{Namespace: e.Key.Namespace, Name: name})
}

// namespaceNames are the Subscriptions of a namespace by what they refer to.
type namespaceNames struct {
	first         string
	ofPlan, ofCSV map[string]string
}

func (r *runner) namesIn(namespace string) *namespaceNames {
	if names := r.named[namespace]; names != nil {
		return names
	}
	names := &namespaceNames{ofPlan: map[string]string{}, ofCSV: map[string]string{}}
	for _, s := range r.subscriptions(namespace) {
		names.first = cmp.Or(names.first, s.Name)
		names.ofCSV[s.Status.InstalledCSV] = s.Name
		if plan := s.Status.InstallPlanRef; plan != nil {
			names.ofPlan[plan.Name] = s.Name
		}
	}
	if r.named == nil {
		r.named = map[string]*namespaceNames{}
	}
	r.named[namespace] = names
	return names
}

func (r *runner) subscriptions(namespace string) []*v1alpha1.Subscription {
	subs, err := olmcore.List[*v1alpha1.Subscription](r.ctx, r.cluster, namespace, nil)
	if err != nil {
		return nil
	}
	return subs
}

// kindOf is the kind that each controller reconciles.
var kindOf = map[string]string{
	controllers.Catalog: v1alpha1.CatalogSourceKind, controllers.InstallPlan: v1alpha1.InstallPlanKind,
	controllers.Group: operatorsv1.OperatorGroupKind, controllers.CSV: v1alpha1.ClusterServiceVersionKind,
	controllers.Condition: "OperatorCondition", controllers.Copies: v1alpha1.ClusterServiceVersionKind,
	controllers.Permissions: v1alpha1.ClusterServiceVersionKind, controllers.OLMConfig: "OLMConfig",
}

func (r *runner) result(kind string, key types.NamespacedName) *Result {
	k := olmcore.Key{Kind: kind, Namespace: key.Namespace, Name: key.Name}
	if r.results[k] == nil {
		r.results[k] = &Result{
			Kind: kind, Namespace: key.Namespace, Name: key.Name,
			Actions: []olmcore.Record{}, Transitions: []olmcore.Transition{}, Diagnostics: []olmcore.Diagnostic{}, Requests: []any{},
		}
	}
	return r.results[k]
}

// say adds a diagnostic, once however often a controller says it.
func (r *Result) say(d olmcore.Diagnostic) {
	if !slices.Contains(r.Diagnostics, d) {
		r.Diagnostics = append(r.Diagnostics, d)
	}
}

// requeue notes the next deadline; it also makes an object appear about which there is nothing to say.
func (r *runner) requeue(name string, key types.NamespacedName, after time.Duration) {
	text := ""
	if after > 0 {
		text = after.String()
	}
	if name != controllers.Subscription {
		if name == controllers.Copies || name == controllers.Permissions {
			r.requeueMore(key, after)
		} else if name != controllers.Group && name != controllers.Condition {
			r.result(kindOf[name], key).RequeueAfter = text
		}
		return
	}
	for _, s := range r.subscriptions(key.Namespace) {
		r.result(v1alpha1.SubscriptionKind, types.NamespacedName{Namespace: s.Namespace, Name: s.Name}).RequeueAfter = text
	}
}

// requeueMore notes a deadline of what belongs to a version, whose own one is noted already.
func (r *runner) requeueMore(key types.NamespacedName, after time.Duration) {
	k := olmcore.Key{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: key.Namespace, Name: key.Name}
	if found := r.results[k]; found != nil {
		own, _ := time.ParseDuration(found.RequeueAfter)
		if nearest := olmcore.Nearest(own, after); nearest > 0 {
			found.RequeueAfter = nearest.String()
		}
	}
}

// report sorts the results and adds the statuses as they are.
func (r *runner) report() *Report {
	all := newReport(r.cluster.Now())
	all.Catalogs, all.GlobalNamespace = r.catalogs.read, r.global
	for _, k := range slices.SortedFunc(maps.Keys(r.results), func(a, b olmcore.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		found := r.results[k]
		if o := r.object(k); o != nil && found.Status == nil {
			found.Status = status{o}
		}
		all.Results = append(all.Results, *found)
	}
	return all
}

// object returns the object that a result is about, nil when it is gone.
func (r *runner) object(k olmcore.Key) olmcore.Object {
	gvk := v1alpha1.SchemeGroupVersion.WithKind(k.Kind)
	if k.Kind == operatorsv1.OperatorGroupKind || k.Kind == "OLMConfig" {
		gvk = operatorsv1.GroupVersion.WithKind(k.Kind)
	}
	o, err := r.cluster.Get(r.ctx, gvk, k.Namespace, k.Name)
	if err != nil {
		return nil
	}
	return o
}
