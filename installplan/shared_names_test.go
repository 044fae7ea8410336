// SPDX-License-Identifier: Apache-2.0

package installplan_test

import "github.com/olmcore/olm/internal/plantest"

// What the tests of installplan and the packages below it share.
const (
	bundleImage = plantest.BundleImage
	bundleName  = plantest.BundleName
	etcdCSV     = plantest.EtcdCSV
)

var (
	ago               = plantest.Ago
	anyMeta           = plantest.AnyMeta
	anySubscription   = plantest.AnySubscription
	bare              = plantest.Bare
	clusterMeta       = plantest.ClusterMeta
	completed         = plantest.Completed
	condition         = plantest.Condition
	crdObject         = plantest.CRDObject
	crdStep           = plantest.CRDStep
	createInput       = plantest.CreateInput
	csv               = plantest.CSV
	csvStep           = plantest.CSVStep
	current           = plantest.Current
	describe          = plantest.Describe
	drawRelations     = plantest.DrawRelations
	filled            = plantest.Filled
	generated         = plantest.Generated
	group             = plantest.Group
	handedOver        = plantest.HandedOver
	held              = plantest.Held
	imageOf           = plantest.ImageOf
	images            = plantest.Images
	inNamespace       = plantest.InNamespace
	inOLM             = plantest.InOLM
	installed         = plantest.Installed
	installs          = plantest.Installs
	lookup            = plantest.Lookup
	made              = plantest.Made
	manual            = plantest.Manual
	maybe             = plantest.Maybe
	meta              = plantest.Meta
	newWorld          = plantest.NewWorld
	normal            = plantest.Normal
	numbered          = plantest.Numbered
	operator          = plantest.Operator
	ownedBy           = plantest.OwnedBy
	ownerRef          = plantest.OwnerRef
	plan              = plantest.Plan
	planned           = plantest.Planned
	publishedOperator = plantest.PublishedOperator
	reader            = plantest.Reader
	reasons           = plantest.Reasons
	refer             = plantest.Refer
	reference         = plantest.Reference
	referring         = plantest.Referring
	refersTo          = plantest.RefersTo
	rich              = plantest.Rich
	roleStep          = plantest.RoleStep
	rules             = plantest.Rules
	same              = plantest.Same
	scoped            = plantest.Scoped
	shown             = plantest.Shown
	started           = plantest.Started
	statuses          = plantest.Statuses
	step              = plantest.Step
	subscription      = plantest.Subscription
	sweepInput        = plantest.SweepInput
	sweepResult       = plantest.SweepResult
	swept             = plantest.Swept
	things            = plantest.Things
	unpackedBundle    = plantest.UnpackedBundle
	userSubscription  = plantest.UserSubscription
	withStatus        = plantest.WithStatus
	world             = plantest.World
	zipped            = plantest.Zipped
)
