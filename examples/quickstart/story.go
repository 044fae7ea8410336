// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription/resolution"
)

//go:embed content
var content embed.FS

// story is the world and what the user does in it.
type story struct {
	ctx     context.Context
	out     io.Writer
	cluster *fake.Cluster
	driver  *fake.Driver
	olm     *olm.OLM
	// catalogs is what the resolver knows, entries and bundles what is published.
	catalogs *controllers.Catalogs
	entries  []resolution.ChannelEntry
	bundles  []resolution.Bundle
	printed  int
}

func newStory(out io.Writer) *story {
	s := &story{ctx: context.Background(), out: out, cluster: fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))}
	s.cluster.AutoCreateNamespaces = true
	s.catalogs = &controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{}}
	s.olm = &olm.OLM{Options: controllers.Options{KubernetesVersion: "v1.36.2", Resolve: s.catalogs.Resolve, Fingerprint: s.catalogs.Fingerprint}}
	s.driver = &fake.Driver{Cluster: s.cluster, Controllers: s.olm.Controllers()}
	return s
}

// say prints a line with the virtual time in front.
func (s *story) say(who, format string, args ...any) {
	s.line(s.cluster.Now(), who, fmt.Sprintf(format, args...))
}

func (s *story) line(at time.Time, who, text string) {
	fmt.Fprintf(s.out, "%s  %-12s %s\n", at.Format("15:04:05"), who, text)
}

// act does what the user does, and lets everything settle.
func (s *story) act(do ...error) error {
	if err := errors.Join(do...); err != nil {
		return err
	}
	return s.settle()
}

func (s *story) settle() error {
	err := s.driver.Settle(s.ctx)
	s.tell()
	return err
}

// wait lets time pass, with the controllers at work.
func (s *story) wait(d time.Duration) error {
	err := s.driver.RunFor(s.ctx, d)
	s.tell()
	return err
}

// tell prints what the controllers did since it was called last: what they created and deleted, and the state changes
// that they report, those of one object at one time in one line.
func (s *story) tell() {
	events := s.driver.Events[s.printed:]
	s.printed = len(s.driver.Events)
	told := map[chain]bool{}
	for i, e := range events {
		if e.Action != nil {
			verb, target, cause := e.Action.Describe()
			if verb != olmcore.VerbUpdate && verb != olmcore.VerbUpdateStatus && !quiet[target.Kind] &&
				e.Controller != controllers.Group && e.Controller != controllers.Permissions {
				s.line(e.At, e.Controller, fmt.Sprintf("%s %s (%s)", verb, target, cause.Reason))
			}
		}
		if c := chainOf(e); c.kind != "" && !told[c] {
			told[c] = true
			s.line(e.At, e.Controller, c.text(events[i:]))
		}
	}
}

// chain identifies the transitions of one state machine at one time.
type chain struct {
	at     time.Time
	target olmcore.Key
	kind   string
}

// chainOf returns the zero chain for what is no transition, or no news.
func chainOf(e controller.Event) chain {
	if e.Transition == nil || e.Transition.Type == "Connection" {
		return chain{}
	}
	return chain{e.At, e.Transition.Target.Key(), strings.ToLower(e.Transition.Type)}
}

func (c chain) text(events []controller.Event) string {
	text := ""
	for _, e := range events {
		if chainOf(e) != c {
			continue
		}
		if text == "" {
			text = fmt.Sprintf("%s: %s %s", c.target, c.kind, orNone(e.Transition.From))
		}
		text += " -> " + orNone(e.Transition.To)
	}
	return text
}

// quiet are the kinds whose coming and going is no news.
var quiet = map[string]bool{
	"NetworkPolicy": true, "Service": true, "ServiceAccount": true, "Role": true, "RoleBinding": true, "ClusterRoleBinding": true,
	"PodDisruptionBudget": true, "OperatorCondition": true,
}

func orNone(state string) string {
	if state == "" {
		return "none"
	}
	return state
}

// publish puts a version of cool-operator, and what it depends on, into the catalog.
func (s *story) publish(version string) error {
	name := "cool-operator.v" + version
	objects, err := read("v" + version + ".yaml")
	if err != nil {
		return err
	}
	entry := resolution.ChannelEntry{Name: name}
	if n := len(s.entries); n > 0 {
		entry.Replaces = s.entries[n-1].Name
	}
	s.entries = append(s.entries, entry)
	s.bundles = append(s.bundles, resolution.Bundle{Name: name, Bundle: olmcore.Bundle{Objects: objects, Properties: []olmcore.Property{
		property("olm.package", `{"packageName":"cool-operator","version":"`+version+`"}`),
		property("olm.package.required", `{"packageName":"blade-operator","versionRange":">=1.0.0"}`),
	}}})
	blade, err := read("blade.yaml")
	if err != nil {
		return err
	}
	catalog, problems := resolution.Build([]resolution.Package{{
		Name: "cool-operator", DefaultChannel: "stable", Bundles: s.bundles,
		Channels: []resolution.Channel{{Name: "stable", Entries: s.entries}},
	}, {
		Name: "blade-operator", DefaultChannel: "stable",
		Bundles: []resolution.Bundle{{Name: "blade-operator.v1.0.0", Bundle: olmcore.Bundle{Objects: blade, Properties: []olmcore.Property{
			property("olm.package", `{"packageName":"blade-operator","version":"1.0.0"}`),
		}}}},
		Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: "blade-operator.v1.0.0"}}}},
	}})
	if len(problems) > 0 {
		return errors.New(problems[0].Message)
	}
	s.catalogs.Content[types.NamespacedName{Namespace: "olm", Name: "community"}] = catalog
	s.olm.CatalogsChanged()
	s.say("world", "the catalog publishes %s, which needs blade-operator", name)
	return nil
}

func property(kind, value string) olmcore.Property {
	return olmcore.Property{Type: kind, Value: json.RawMessage(value)}
}

func read(name string) ([]olmcore.Object, error) {
	text, err := content.ReadFile("content/" + name)
	if err != nil {
		return nil, err
	}
	found, err := decode.Read(name, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return decode.Distinct(found)
}

// create creates those objects of cluster.yaml that are of a kind.
func (s *story) create(kind string) error {
	objects, err := read("cluster.yaml")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if olmcore.KeyOf(o).Kind != kind {
			continue
		}
		s.say("you", "create %s", olmcore.KeyOf(o))
		if err := s.cluster.Create(o); err != nil {
			return err
		}
	}
	return nil
}

// expect fails the story when something that it tells did not happen.
func expect(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("expected that "+format, args...)
}

// serving returns the ready registry Pods, sorted by name.
func (s *story) serving() []*corev1.Pod {
	pods, err := olmcore.List[*corev1.Pod](s.ctx, s.cluster, "olm", nil)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		return !ready || p.DeletionTimestamp != nil
	})
}

// nodes returns where Pods run, in words.
func nodes(pods []*corev1.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Spec.NodeName)
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

func (s *story) subscription() *v1alpha1.Subscription {
	return fake.Find[*v1alpha1.Subscription](s.cluster, "cool", "cool")
}

// plan returns the InstallPlan that the Subscription refers to.
func (s *story) plan() (*v1alpha1.InstallPlan, error) {
	ref := s.subscription().Status.InstallPlanRef
	if ref == nil {
		return nil, errors.New("expected that the Subscription refers to an InstallPlan")
	}
	p := fake.Find[*v1alpha1.InstallPlan](s.cluster, "cool", ref.Name)
	return p, expect(p != nil, "InstallPlan %s exists", ref.Name)
}

// approve approves the plan that waits.
func (s *story) approve() error {
	p, err := s.plan()
	if err != nil {
		return err
	}
	if err := expect(p.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval, "%s requires approval, not %s", p.Name, p.Status.Phase); err != nil {
		return err
	}
	s.say("you", "approve %s, owned by %s", olmcore.KeyOf(p), owners(p))
	return s.act(fake.Edit(s.cluster, "cool", p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
}

func owners(p *v1alpha1.InstallPlan) string {
	var names []string
	for _, ref := range p.OwnerReferences {
		names = append(names, ref.Kind+" "+ref.Name)
	}
	return strings.Join(names, " and ")
}

// installed fails unless a version is installed and runs.
func (s *story) installed(name string) error {
	csv := fake.Find[*v1alpha1.ClusterServiceVersion](s.cluster, "cool", name)
	if csv == nil {
		return fmt.Errorf("expected that %s exists", name)
	}
	d := fake.Find[*appsv1.Deployment](s.cluster, "cool", "cool-operator")
	sub := s.subscription()
	return errors.Join(
		expect(csv.Status.Phase == v1alpha1.CSVPhaseSucceeded, "%s is Succeeded, not %s: %s", name, csv.Status.Phase, csv.Status.Message),
		expect(d != nil && d.Status.AvailableReplicas == 1, "the Deployment is available"),
		expect(sub.Status.State == v1alpha1.SubscriptionStateAtLatest && sub.Status.InstalledCSV == name,
			"the Subscription is at %s, not %s at %s", name, sub.Status.State, sub.Status.InstalledCSV),
	)
}

// leftovers returns what cool-operator left behind, its CRD apart.
func (s *story) leftovers() []string {
	var left []string
	for _, o := range s.cluster.Objects() {
		if key := olmcore.KeyOf(o); strings.HasPrefix(key.Name, "cool-operator") || key.Kind == "Fan" {
			left = append(left, key.String())
		}
	}
	return left
}
