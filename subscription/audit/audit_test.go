// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
)

func auditOf(t require.TestingT, in subscription.Input) []audit.Finding {
	findings, err := audit.Find(in)
	require.NoError(t, err)
	return findings
}

// labelledPlan is a plan with the component label of its Subscription.
func labelledPlan(name string, phase v1alpha1.InstallPlanPhase, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	return newPlan(name, phase, append([]func(*v1alpha1.InstallPlan){func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{labelKey: ""} }}, change...)...)
}

// TestAuditFindsAndRepairsEachCode checks a world for each code. A repair, if there is one, removes the finding.
func TestAuditFindsAndRepairsEachCode(t *testing.T) {
	done := labelledPlan("p", "Complete", started(3), done(9))
	latest := newSub("a", follows("p", "etcd.v1"), installed)
	waits := newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6))
	manualPlan := labelledPlan("p", "RequiresApproval", manual(1))
	etcd := newCSV("etcd.v1")
	owns := func(owners ...*v1alpha1.Subscription) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) {
			p.OwnerReferences = nil
			for _, s := range owners {
				p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(s))
			}
		}
	}
	empty := func(p *v1alpha1.InstallPlan) { p.Status.Plan = nil }
	vaultPlan := func(p *v1alpha1.InstallPlan) {
		p.Spec.ClusterServiceVersionNames, p.Spec.Generation = []string{"vault.v1"}, 2
	}
	asks := func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = v1alpha1.ApprovalManual }
	ofSet := func(p *v1alpha1.InstallPlan) {
		p.Annotations = map[string]string{olmcore.AnnotationSeparatePlan: "true"}
	}
	ofBoth := labelledPlan("p", "RequiresApproval", manual(1), ofSet, owns(newSub("a"), vault("b")))
	old := newSub("a")
	old.UID = "a-earlier"
	oldVault := vault("b")
	oldVault.UID = "b-earlier"
	hashed := func(p *v1alpha1.InstallPlan) {
		p.Spec.ClusterServiceVersionNames, p.Annotations = nil, map[string]string{"olmcore/content-hash": "x"}
	}
	malformed := func(p *v1alpha1.InstallPlan) { p.OwnerReferences[0].Controller = new(true) }
	twice := func(p *v1alpha1.InstallPlan) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0]) }
	long := strings.Repeat("x", 70)
	named := func(pkg string) func(*v1alpha1.Subscription) {
		return func(s *v1alpha1.Subscription) {
			key, _ := olmcore.ComponentLabelKey(pkg, ns)
			s.Spec.Package, s.Labels = pkg, map[string]string{key: ""}
		}
	}
	for code, tc := range map[string]struct {
		objects []olmcore.Object
		change  func(*subscription.Input)
		target  string
		repair  bool
		safe    bool
		swept   bool // sweep.Reconcile repairs it
	}{
		"RefMissingPlan":           {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"))}, target: "Subscription a", repair: true, safe: true},
		"RefMissingPlan/installed": {objects: []olmcore.Object{latest, etcd}, target: "Subscription a", repair: true, safe: true},
		"RefUIDMismatch":           {objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Complete", func(p *v1alpha1.InstallPlan) { p.UID = "restored" })}, target: "Subscription a", repair: true, safe: true},
		"RefMirrorMismatch":        {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.Install = nil }), etcd, done}, target: "Subscription a", repair: true, safe: true},
		"RefWrongNamespace":        {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.InstallPlanRef.Namespace = "x" })}, target: "Subscription a", repair: true},
		"RefInvalid":               {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.InstallPlanRef.Name = "" })}, target: "Subscription a", repair: true},
		"OwnerMissing":             {objects: []olmcore.Object{waits, labelledPlan("p", "RequiresApproval", manual(1), owns())}, target: "InstallPlan p", swept: true},
		"OwnerMissing/generated":   {objects: []olmcore.Object{newSub("a"), vault("b", func(s *v1alpha1.Subscription) { s.Annotations = map[string]string{"olm.generated-by": "p"} }), done}, target: "InstallPlan p", swept: true},
		"OwnerMissing/contributes": {objects: []olmcore.Object{newSub("a"), vault("b"), labelledPlan("p", "Complete", func(p *v1alpha1.InstallPlan) {
			p.Annotations = map[string]string{"olmcore/contributors": "a-uid,b-uid"}
		})}, target: "InstallPlan p", swept: true},
		"OwnerStaleUID":                   {objects: []olmcore.Object{waits, labelledPlan("p", "RequiresApproval", manual(1), owns(old))}, target: "InstallPlan p", swept: true},
		"OwnerMalformed":                  {objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Complete", malformed)}, target: "InstallPlan p", swept: true},
		"OwnerDuplicate":                  {objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Complete", twice)}, target: "InstallPlan p", swept: true},
		"OwnerDangling":                   {objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Complete", owns(newSub("a"), vault("gone")))}, target: "InstallPlan p", repair: true},
		"LabelMissing":                    {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Labels = nil })}, target: "Subscription a", repair: true, safe: true},
		"LabelMissing/plan":               {objects: []olmcore.Object{latest, etcd, newPlan("p", "Complete")}, target: "InstallPlan p", swept: true},
		"LabelMissing/csv":                {objects: []olmcore.Object{latest, done, newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = nil })}, target: "ClusterServiceVersion etcd.v1", repair: true, safe: true},
		"LabelMissing/beside a stale one": {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Labels = map[string]string{"operators.coreos.com/old.ops": ""} })}, change: func(in *subscription.Input) { in.PreviousPackages = map[types.UID][]string{"a-uid": {"old"}} }, target: "Subscription a", repair: true, safe: true},
		"LabelStale":                      {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Labels["operators.coreos.com/old.ops"] = "" })}, change: func(in *subscription.Input) { in.PreviousPackages = map[types.UID][]string{"a-uid": {"old", "etcd"}} }, target: "Subscription a", repair: true, safe: true},
		"LabelKeyCollision":               {objects: []olmcore.Object{newSub("a", named(long+"a")), newSub("b", named(long+"b"))}, target: "Subscription b"},
		"LabelKeyInvalid":                 {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Spec.Package = "-etcd" })}, target: "Subscription a"},
		"AssociationDisagree":             {objects: []olmcore.Object{newSub("a"), vault("b"), labelledPlan("p", "Complete", owns(vault("b")))}, target: "InstallPlan p"},
		"GenerationMismatch":              {objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Complete", func(p *v1alpha1.InstallPlan) { p.Spec.Generation = 4 })}, target: "Subscription a", repair: true, safe: true},
		"GenerationDuplicate":             {objects: []olmcore.Object{latest, etcd, done, labelledPlan("q", "Complete")}, target: "InstallPlan q"},
		"ContentDuplicate":                {objects: []olmcore.Object{waits, manualPlan, labelledPlan("q", "RequiresApproval", manual(1))}, target: "InstallPlan q", repair: true},
		"StatuslessPlan":                  {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), pending("InstallPlanNotYetReconciled", 6)), labelledPlan("p", "", empty)}, target: "InstallPlan p"},
		"StatuslessPlan/unreferred":       {objects: []olmcore.Object{newSub("a"), labelledPlan("p", "", empty)}, target: "InstallPlan p", repair: true},
		"ContentDuplicate/kept":           {objects: []olmcore.Object{newSub("a", follows("q", "etcd.v1"), pending("RequiresApproval", 6)), manualPlan, labelledPlan("q", "RequiresApproval", manual(1))}, target: "InstallPlan q", repair: true},
		"ContentDuplicate/approved":       {objects: []olmcore.Object{waits, manualPlan, labelledPlan("q", "Installing")}, target: "InstallPlan q"},
		"OrphanPlan/unaddressable":        {objects: []olmcore.Object{latest, etcd, done, labelledPlan("q", "RequiresApproval", vaultPlan, owns(), func(p *v1alpha1.InstallPlan) { p.ResourceVersion = "" })}, target: "InstallPlan q"},
		"OwnerDangling/alone":             {objects: []olmcore.Object{vault("b"), labelledPlan("p", "Complete", owns(vault("gone")))}, target: "InstallPlan p"},
		"SupersededPlan":                  {objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Installing")}, target: "InstallPlan p"},
		"SupersededPlan/unreferred":       {objects: []olmcore.Object{latest, etcd, done, labelledPlan("q", "RequiresApproval")}, target: "InstallPlan q"},
		"SupersededPlan/newer": {objects: []olmcore.Object{newSub("a", follows("q", "etcd.v2"), pending("RequiresApproval", 6), func(s *v1alpha1.Subscription) { s.Status.InstallPlanGeneration = 2 }), manualPlan,
			labelledPlan("q", "RequiresApproval", manual(1), func(p *v1alpha1.InstallPlan) {
				p.Spec.ClusterServiceVersionNames, p.Spec.Generation = []string{"etcd.v2"}, 2
			})}, target: "InstallPlan p", repair: true},
		"OrphanPlan":              {objects: []olmcore.Object{latest, etcd, done, labelledPlan("q", "RequiresApproval", vaultPlan, owns())}, target: "InstallPlan q", repair: true},
		"WedgedUpgradePending":    {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1")), done}, target: "Subscription a", repair: true},
		"OwnerDangling/former":    {objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Complete", owns(newSub("a"), old))}, target: "InstallPlan p", repair: true},
		"OwnerDangling/unrelated": {objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Complete", owns(newSub("a"), oldVault)), vault("b")}, target: "InstallPlan p", repair: true},
		"ContentDuplicate/hash":   {objects: []olmcore.Object{waits, labelledPlan("p", "RequiresApproval", manual(1), hashed), labelledPlan("q", "RequiresApproval", manual(1), hashed)}, target: "InstallPlan q", repair: true},
		"WedgedUpgradePending/reinstalled": {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1")), done}, target: "Subscription a", repair: true, safe: true,
			change: func(in *subscription.Input) { in.Config.ReinstallMissingCSV = true }},
		"FailedPlanWedge":                 {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), withCondition("InstallPlanFailed", "InstallComponentFailed", "step broke", 6)), labelledPlan("p", "Failed", failed(4))}, target: "Subscription a"},
		"StateContradiction":              {objects: []olmcore.Object{latest, done}, target: "Subscription a", repair: true, safe: true},
		"StateContradiction/installedCSV": {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v0" }), etcd, done}, target: "Subscription a", repair: true, safe: true},
		"ConditionContradiction": {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed, pending("Installing", 6), withCondition("InstallPlanFailed", "X", "", 6)), etcd, done},
			target: "Subscription a", repair: true, safe: true},
		"ConditionContradiction/twice":    {objects: []olmcore.Object{newSub("a", withCondition("ResolutionFailed", "X", "", 6), withCondition("ResolutionFailed", "X", "", 7))}, target: "Subscription a", repair: true, safe: true},
		"ConditionContradiction/behind":   {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed, pending("Installing", 6)), etcd, done}, target: "Subscription a", repair: true, safe: true},
		"ConditionContradiction/unpacked": {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed, withCondition("BundleUnpacking", "UnpackingInProgress", "", 1)), etcd, done}, change: func(in *subscription.Input) { in.Resolution = nil }, target: "Subscription a", repair: true, safe: true},
		"ConditionWithoutRef":             {objects: []olmcore.Object{newSub("a", pending("Installing", 6))}, target: "Subscription a", repair: true, safe: true},
		"RefMirrorMismatch/uuid":          {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.Install.UID = "another" }), etcd, done}, target: "Subscription a", repair: true, safe: true},
		"ApprovalDrift":                   {objects: []olmcore.Object{waits, manualPlan}, target: "InstallPlan p", repair: true},
		"ApprovalDrift/running":           {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), pending("Installing", 6), asks), labelledPlan("p", "Installing", started(3))}, target: "InstallPlan p"},
		"ApprovalForcedBy":                {objects: []olmcore.Object{waits, manualPlan, vault("b", asks)}, target: "Subscription a"},
		"SamePackage":                     {objects: []olmcore.Object{newSub("a"), newSub("b")}, target: "Subscription b"},
		"SharedInstalledCSV":              {objects: []olmcore.Object{latest, etcd, done, newSub("b", follows("p", "etcd.v1"), installed)}, target: "Subscription a"},
		"GeneratedByDangling":             {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Annotations = map[string]string{"olm.generated-by": "x"} })}, target: "Subscription a"},
		"GeneratedByStale":                {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Annotations = map[string]string{"olm.generated-by": "p"} }), done}, target: "Subscription a"},
		"CopiedCSVReferenced":             {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1")), done, newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })}, target: "Subscription a"},
		"CopiedCSVReferenced/installed":   {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v0" }), labelledPlan("p", "Installing"), newCSV("etcd.v0", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })}, target: "Subscription a"},
		"InvalidSpec":                     {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Spec.CatalogSource = "" })}, target: "Subscription a"},
		"InvalidSpec/approval":            {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = "Perhaps" })}, target: "Subscription a"},
		"InvalidSpec/none":                {objects: []olmcore.Object{newSub("a", func(s *v1alpha1.Subscription) { s.Spec = nil })}, target: "Subscription a"},
		"GenerationDuplicate/set": {
			objects: []olmcore.Object{latest, etcd, labelledPlan("p", "Complete", ofSet), labelledPlan("q", "Complete", ofSet)},
			target:  "InstallPlan q",
		},
		"ApprovalDrift/set": {
			objects: []olmcore.Object{waits, labelledPlan("p", "RequiresApproval", manual(1), ofSet), vault("b", asks)},
			target:  "InstallPlan p", repair: true,
		},
		"ApprovalForcedBy/set": {objects: []olmcore.Object{waits, ofBoth, vault("b", asks)}, target: "Subscription a"},
		"DeprecationUnknown": {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed, withCondition("BundleDeprecated", "", "b", 6)), etcd, done}, target: "Subscription a",
			change: func(in *subscription.Input) {
				in.Catalogs = &subscription.Catalogs{Sources: olmcore.Found[*v1alpha1.CatalogSource]()}
			}},
	} {
		t.Run(code, func(t *testing.T) {
			code, _, _ := strings.Cut(code, "/")
			in := answered(inputOf(tc.objects...))
			in.Now = epoch.Add(10 * time.Minute)
			if tc.change != nil {
				tc.change(&in)
			}
			findings := auditOf(t, in)
			i := slices.IndexFunc(findings, func(f audit.Finding) bool {
				return f.Reason == code && f.Target.Kind+" "+f.Target.Name == tc.target
			})
			require.GreaterOrEqual(t, i, 0, "%+v", findings)
			f := findings[i]
			require.NotEmpty(t, f.Message)
			require.NotEmpty(t, f.Path)
			require.Equal(t, tc.repair, len(f.Repair) > 0)
			require.Equal(t, tc.safe, f.Safe)
			require.Equal(t, findings, auditOf(t, reversed(in)), "the order of lists does not matter")
			if tc.swept {
				swept, err := sweep.Reconcile(sweep.Input{
					Now: in.Now, Namespace: ns, Namespaces: olmcore.Found[*corev1.Namespace](),
					Subscriptions: in.Subscriptions, InstallPlans: in.InstallPlans,
				})
				require.NoError(t, err)
				f.Repair = swept.Actions
			}
			for _, action := range f.Repair {
				if u, ok := action.(olmcore.Update); ok {
					for _, s := range in.Subscriptions.Items {
						require.True(t, !olmcore.OwnedBy(u.Before, s.UID) || olmcore.OwnedBy(u.After, s.UID), "a live owner was taken off")
					}
				}
			}
			if len(f.Repair) > 0 || tc.swept {
				carryOut(&in, subscription.Outcome{Result: olmcore.Result{Actions: f.Repair}})
				for _, g := range auditOf(t, in) {
					require.False(t, g.Reason == code && g.Target == f.Target, "%+v", g)
				}
			}
		})
	}
}

// TestConflictingPlansOfOneGenerationAreReportedOnce checks that every two InstallPlans of a generation are
// compared, and that plans that conflict with each other are reported once, by name.
func TestConflictingPlansOfOneGenerationAreReportedOnce(t *testing.T) {
	ofSet := func(name string, owners ...*v1alpha1.Subscription) *v1alpha1.InstallPlan {
		return newPlan(name, "Complete", func(p *v1alpha1.InstallPlan) {
			p.Annotations, p.OwnerReferences = map[string]string{olmcore.AnnotationSeparatePlan: "true"}, nil
			for _, s := range owners {
				p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(s))
			}
		})
	}
	a, b, c := newSub("a"), vault("b"), vault("c")
	for name, tc := range map[string]struct {
		plans []*v1alpha1.InstallPlan
		want  []string // plan: message
	}{
		"three sets": {plans: []*v1alpha1.InstallPlan{ofSet("p", a), ofSet("q", b), ofSet("r", c)}},
		"the last two have one owner": {
			plans: []*v1alpha1.InstallPlan{ofSet("p", a), ofSet("q", b), ofSet("r", b)},
			want:  []string{"r: InstallPlan q also has generation 1"},
		},
		"three have one owner": {
			plans: []*v1alpha1.InstallPlan{ofSet("p", a), ofSet("q", a), ofSet("r", a)},
			want:  []string{"r: InstallPlans p and q also have generation 1"},
		},
		"the third joins two": {
			plans: []*v1alpha1.InstallPlan{ofSet("p", a), ofSet("q", b), ofSet("r", a, b)},
			want:  []string{"r: InstallPlans p and q also have generation 1"},
		},
		"two owners, each of two": {
			plans: []*v1alpha1.InstallPlan{ofSet("p", a), ofSet("q", b), ofSet("r", a), ofSet("s", b)},
			want:  []string{"r: InstallPlan p also has generation 1", "s: InstallPlan q also has generation 1"},
		},
		"one is for all": {
			plans: []*v1alpha1.InstallPlan{ofSet("p", a), ofSet("q", b), newPlan("r", "Complete")},
			want:  []string{"r: InstallPlans p and q also have generation 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(a, b, c)
			in.InstallPlans.Items = append(in.InstallPlans.Items, tc.plans...)
			var got []string
			for _, f := range auditOf(t, answered(in)) {
				if f.Reason == audit.GenerationDuplicate {
					got = append(got, f.Target.Name+": "+f.Message)
				}
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// TestSimilarWorldsAreNoFinding checks worlds that look like a finding of a code, but are correct.
func TestSimilarWorldsAreNoFinding(t *testing.T) {
	asks := func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = v1alpha1.ApprovalManual }
	waits := newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6))
	runs := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6))
	both := func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(vault("b")))
	}
	second := func(p *v1alpha1.InstallPlan) { p.Spec.Generation = 2 }
	ofSet := func(p *v1alpha1.InstallPlan) {
		p.Annotations = map[string]string{olmcore.AnnotationSeparatePlan: "true"}
	}
	ofVault := func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(vault("b"))}
	}
	for name, tc := range map[string]struct {
		code    string
		objects []olmcore.Object
	}{
		"a plan that has waited for long": {"StatuslessPlan", []olmcore.Object{waits, labelledPlan("p", "RequiresApproval", manual(1))}},
		"a plan that only unpacks": {"StatuslessPlan", []olmcore.Object{newSub("a", follows("p", "etcd.v1")), labelledPlan("p", "", func(p *v1alpha1.InstallPlan) {
			p.Status.Plan, p.Status.BundleLookups = nil, []v1alpha1.BundleLookup{{}}
		})}},
		"another one asks for approvals":  {"ApprovalDrift", []olmcore.Object{runs, labelledPlan("p", "Installing", started(3)), vault("b", asks)}},
		"one that asks and does not wait": {"ApprovalForcedBy", []olmcore.Object{runs, labelledPlan("p", "Installing", started(3)), vault("b", asks)}},
		"who asks is deleted": {"ApprovalForcedBy", []olmcore.Object{waits, labelledPlan("p", "RequiresApproval", manual(1)), vault("b", asks, func(s *v1alpha1.Subscription) {
			s.DeletionTimestamp = secondp(9)
		})}},
		"who asks is of another set": {"ApprovalForcedBy", []olmcore.Object{
			waits, labelledPlan("p", "RequiresApproval", manual(1), ofSet), vault("b", asks),
		}},
		"two sets of one resolution": {"GenerationDuplicate", []olmcore.Object{
			runs, vault("b"), labelledPlan("p", "Installing", started(3), ofSet), newPlan("q", "Complete", ofSet, ofVault),
		}},
		"a plan that needs no approval and is not approved": {"ApprovalDrift", []olmcore.Object{runs, labelledPlan("p", "Installing", started(3), func(p *v1alpha1.InstallPlan) { p.Spec.Approved = false })}},
		"an owner of another kind by that name": {"OwnerStaleUID", []olmcore.Object{waits, labelledPlan("p", "RequiresApproval", manual(1), func(p *v1alpha1.InstallPlan) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "other"}}
		})}},
		"two follow one package":         {"LabelKeyCollision", []olmcore.Object{newSub("a"), newSub("b")}},
		"two owners, both labelled":      {"AssociationDisagree", []olmcore.Object{waits, vault("b", follows("p", "etcd.v1"), pending("RequiresApproval", 6)), labelledPlan("p", "RequiresApproval", manual(1), both)}},
		"two plans, one of them is over": {"ContentDuplicate", []olmcore.Object{runs, labelledPlan("p", "Installing", started(3)), labelledPlan("q", "Complete", second)}},
	} {
		t.Run(name, func(t *testing.T) {
			in := answered(inputOf(tc.objects...))
			in.Now = epoch.Add(10 * time.Minute)
			for _, f := range auditOf(t, in) {
				require.NotEqual(t, tc.code, f.Reason, "%+v", f)
			}
		})
	}
}

func TestRecentFindingsHaveSeverityInfo(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) { p.CreationTimestamp = metav1.NewTime(now) }))
	for _, f := range auditOf(t, in) {
		require.Equal(t, olmcore.Info, f.Severity, f)
	}
}

func reversed(in subscription.Input) subscription.Input {
	in.Subscriptions.Items, in.InstallPlans.Items, in.ClusterServiceVersions.Items = slices.Clone(in.Subscriptions.Items), slices.Clone(in.InstallPlans.Items), slices.Clone(in.ClusterServiceVersions.Items)
	slices.Reverse(in.Subscriptions.Items)
	slices.Reverse(in.InstallPlans.Items)
	slices.Reverse(in.ClusterServiceVersions.Items)
	return in
}
