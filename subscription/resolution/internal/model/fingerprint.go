// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// Fingerprint returns a digest of the input. Resolve returns the same Result for two inputs if their fingerprints,
// Subscriptions, InstallPlans and caller-set fields are the same.
//
// The digest covers OperatorGroups, existing ClusterServiceVersions, catalogs, version ranges, and the Subscriptions
// whose InstallPlan failed. It also covers the packages that Subscriptions name, and the packages that may meet a
// requirement directly or indirectly. A change of another package usually does not change the digest.
//
// A caller that passes a Result to package subscription should store the fingerprint with the Result, and should
// discard the Result when the fingerprint changes. For example, the fingerprint changes when the predecessor of an
// upgrade is removed, or when an InstallPlan fails.
func (in *Input) Fingerprint() string {
	d := Digester{}
	in.digestObjects(&d)
	in.digestCatalogs(&d)
	reached(Read(in)).digest(&d)
	return d.Sum()
}

// digestObjects adds what Resolve reads of the objects of the namespace, and of Pins.
func (in *Input) digestObjects(d *Digester) {
	for _, g := range in.OperatorGroups {
		if g != nil && g.Namespace == in.Namespace {
			d.Begin("group", g.Name, string(g.UID), string(g.Spec.UpgradeStrategy), g.Annotations[exclusionAnnotation])
			d.Texts(g.Status.Namespaces...)
			d.End()
		}
	}
	for _, s := range in.Subscriptions {
		if s == nil || s.Namespace != in.Namespace {
			continue
		}
		if text, ok := s.Annotations[AnnotationVersionRange]; ok { // the generation does not change with an annotation
			d.Begin("version-range", s.Name, text)
			d.End()
		}
		if s.Status.GetCondition(v1alpha1.SubscriptionInstallPlanFailed).Status == corev1.ConditionTrue {
			d.Begin("plan-failed", s.Name)
			d.End()
		}
	}
	for _, pin := range in.Pins {
		d.Begin("pin", pin.Subscription, pin.Range)
		d.End()
	}
	for _, c := range in.CSVs {
		if c != nil && c.Namespace == in.Namespace && !isCopied(c) {
			csv(d, c)
		}
	}
}

// digestCatalogs adds the states of the catalogs, without their content.
func (in *Input) digestCatalogs(d *Digester) {
	count := map[types.NamespacedName]int{}
	for i := range in.Catalogs {
		count[in.Catalogs[i].Key]++
	}
	for i := range in.Catalogs {
		c := &in.Catalogs[i]
		d.Begin("catalog", c.Key.Namespace, c.Key.Name, strconv.Itoa(c.Priority), strconv.FormatBool(c.Content != nil),
			strconv.FormatBool(c.Content.IsEmpty()), strconv.FormatBool(c.Stale), c.Problem)
		if count[c.Key] > 1 { // which of them counts depends on it
			d.Texts(c.Content.Digest())
		}
		d.End()
	}
}

// csv adds what Resolve reads of an existing ClusterServiceVersion.
func csv(d *Digester, c *v1alpha1.ClusterServiceVersion) {
	text, annotated := c.Annotations[olmcore.AnnotationProperties]
	d.Begin("csv", c.Name, string(c.UID), string(c.Status.Phase), strconv.FormatBool(plans.NeverInstalled(c)),
		strconv.FormatBool(c.DeletionTimestamp != nil), c.Spec.Replaces, c.Spec.Version.String(), strconv.FormatBool(annotated), text)
	for _, list := range [...][]v1alpha1.CRDDescription{c.Spec.CustomResourceDefinitions.Owned, c.Spec.CustomResourceDefinitions.Required} {
		d.Texts(strconv.Itoa(len(list)))
		for _, x := range list {
			d.Texts(x.Name, x.Version, x.Kind)
		}
	}
	for _, list := range [...][]v1alpha1.APIServiceDescription{c.Spec.APIServiceDefinitions.Owned, c.Spec.APIServiceDefinitions.Required} {
		d.Texts(strconv.Itoa(len(list)))
		for _, x := range list {
			d.Texts(x.Group, x.Version, x.Kind)
		}
	}
	d.End()
}

// reach is the content that the answer for a namespace depends on: the packages that its Subscriptions follow, what
// these and the existing operators require, what that requires, and so on. A publication elsewhere changes no answer.
type reach struct {
	p *Problem
	// packages are those that are reached; whole are sources of which all is.
	packages map[sourcePackage]bool
	whole    map[int]bool
	// met are the requirements that were followed, by their keys; pending are packages whose requirements were not.
	met     map[string]bool
	pending []*PackageIndex
}

// sourcePackage is a package of one source. Two sources may share their content.
type sourcePackage struct {
	source int
	pkg    *PackageIndex
}

// reached returns the objects that a resolution depends on. It returns no catalog content if the resolution reads none.
func reached(p *Problem) *reach {
	r := &reach{p: p, packages: map[sourcePackage]bool{}, whole: map[int]bool{}, met: map[string]bool{}}
	switch {
	case p.Blocked != "":
		return r
	case p.Failure != "", p.Policy.FailOnMalformedChannel, p.Policy.FailOnInvalidBundle:
		for i := range p.Sources { // one piece anywhere may stop all
			r.whole[i] = true
		}
		return r
	}
	for _, s := range p.Subs {
		i := int(p.sourceOf(s.Object.Spec))
		switch {
		case i == NoSource:
		case s.Pkg == nil:
			r.all(i) // what may be followed instead is proposed, if it can be installed
		default:
			r.add(i, s.Pkg)
		}
	}
	for _, c := range p.Existing {
		r.follow(c.Entry)
	}
	for len(r.pending) > 0 {
		next := r.pending[0]
		r.pending = r.pending[1:]
		for _, ch := range next.Channels {
			for _, e := range ch.ByName {
				r.follow(e)
			}
		}
	}
	return r
}

func (r *reach) add(source int, pkg *PackageIndex) {
	if at := (sourcePackage{source, pkg}); !r.packages[at] {
		r.packages[at] = true
		r.pending = append(r.pending, pkg)
	}
}

// all adds the whole of a source.
func (r *reach) all(source int) {
	r.whole[source] = true
	for _, pkg := range r.p.Sources[source].Content.Sorted {
		r.add(source, pkg)
	}
}

// follow adds what offers something for the requirements of an entry.
func (r *reach) follow(e *Entry) {
	for _, q := range e.Requirements {
		if r.met[q.Key] {
			continue
		}
		r.met[q.Key] = true
		for i := range r.p.Sources {
			r.offers(i, q.Predicate)
		}
	}
}

// offers adds what lookup may return for a predicate.
func (r *reach) offers(source int, q *Predicate) {
	c := r.p.Sources[source].Content
	switch {
	case !isIndexed(q):
		r.whole[source] = true // and of every other source: that the demand has no index is the same there
	case q.Kind == IsAll:
		for _, part := range q.Parts {
			if isIndexed(part) {
				r.offers(source, part)
			}
		}
	default:
		named := c.ByName[q.Name]
		if q.Kind == IsPackage && named != nil {
			r.add(source, named) // also one that offers nothing
		}
		list, _ := lookup(c, q)
		for _, e := range list {
			r.add(source, e.Channel.Pkg)
		}
	}
}

// digest takes in the content that is reached.
func (r *reach) digest(d *Digester) {
	for i, s := range r.p.Sources {
		if r.whole[i] {
			d.Begin("content", s.Key.Namespace, s.Key.Name, s.Content.Digest())
			d.End()
		}
	}
	for at := range r.packages {
		s := r.p.Sources[at.source]
		if !r.whole[at.source] {
			d.Begin("package", s.Key.Namespace, s.Key.Name, at.pkg.Digest)
			d.End()
		}
	}
}
