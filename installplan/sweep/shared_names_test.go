// SPDX-License-Identifier: Apache-2.0

package sweep_test

import "github.com/olmcore/olm/internal/plantest"

// What the tests of installplan and the packages below it share.
const (
	bundleImage      = plantest.BundleImage
	bundleName       = plantest.BundleName
	complete         = plantest.Complete
	created          = plantest.Created
	failed           = plantest.Failed
	installing       = plantest.Installing
	none             = plantest.None
	ns               = plantest.NS
	requiresApproval = plantest.RequiresApproval
)

var (
	ago            = plantest.Ago
	clusterMeta    = plantest.ClusterMeta
	crdObject      = plantest.CRDObject
	crdStep        = plantest.CRDStep
	csv            = plantest.CSV
	csvStep        = plantest.CSVStep
	current        = plantest.Current
	describe       = plantest.Describe
	drawRelations  = plantest.DrawRelations
	generated      = plantest.Generated
	inNamespace    = plantest.InNamespace
	installed      = plantest.Installed
	lookup         = plantest.Lookup
	maybe          = plantest.Maybe
	meta           = plantest.Meta
	noon           = plantest.Noon
	numbered       = plantest.Numbered
	owned          = plantest.Owned
	ownedBy        = plantest.OwnedBy
	plan           = plantest.Plan
	reader         = plantest.Reader
	reasons        = plantest.Reasons
	reference      = plantest.Reference
	refersTo       = plantest.RefersTo
	roleStep       = plantest.RoleStep
	same           = plantest.Same
	step           = plantest.Step
	subscription   = plantest.Subscription
	sweepInput     = plantest.SweepInput
	sweepResult    = plantest.SweepResult
	swept          = plantest.Swept
	unpackedBundle = plantest.UnpackedBundle
	withStatus     = plantest.WithStatus
	withoutSteps   = plantest.WithoutSteps
)
