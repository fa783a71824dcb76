from geneb_ci.api import CheckReport as CheckReport
from geneb_ci.api import audit as audit
from geneb_ci.api import board as board
from geneb_ci.api import build as build
from geneb_ci.api import check as check
from geneb_ci.api import check_branch as check_branch
from geneb_ci.api import check_pull as check_pull
from geneb_ci.api import command as command
from geneb_ci.api import compare as compare
from geneb_ci.api import fix as fix
from geneb_ci.api import next_step as next_step
from geneb_ci.api import recommend as recommend
from geneb_ci.api import rules as rules
from geneb_ci.api import trust as trust
from geneb_ci.api import verify as verify
from geneb_ci.audit.record.verify import Verification as Verification
from geneb_ci.audit.rerun.prepare import Machine as Machine
from geneb_ci.audit.sampling.beacon_source import BeaconSource as BeaconSource
from geneb_ci.check.fixes import Fixed as Fixed
from geneb_ci.check.report import ProposalFacts as ProposalFacts
from geneb_ci.check.report import UncommittedFile as UncommittedFile
from geneb_ci.check.report import Verdict as Verdict
from geneb_ci.check.rule import Rule as Rule
from geneb_ci.common.errors import BadConfiguration as BadConfiguration
from geneb_ci.common.errors import BrokenInstallation as BrokenInstallation
from geneb_ci.common.errors import GenebError as GenebError
from geneb_ci.common.errors import MachineFault as MachineFault
from geneb_ci.common.errors import NothingChecked as NothingChecked
from geneb_ci.common.errors import UsageProblem as UsageProblem
from geneb_ci.common.finding import Finding as Finding
from geneb_ci.common.finding import Severity as Severity
from geneb_ci.receipt.compared import ComparedRegime as ComparedRegime
from geneb_ci.receipt.compared import ComparedScore as ComparedScore
from geneb_ci.render.results import AuditResult as AuditResult
from geneb_ci.render.results import BuiltBoard as BuiltBoard
from geneb_ci.render.results import CommandResult as CommandResult
from geneb_ci.render.results import ModelComparison as ModelComparison
from geneb_ci.render.results import Recommendation as Recommendation
from geneb_ci.render.results import RowTrust as RowTrust
from geneb_ci.render.results import Verifications as Verifications
from geneb_ci.sandbox.limits import Limits as Limits
from geneb_ci.situation.table import NextStep as NextStep

__version__: str

class SubmissionsRefused(GenebError):  # noqa: N818 (as in geneb_ci.board.board)
    # Where the functions raise it, its report is one that a notebook shows.
    report: CheckReport

def make_callable(package: str) -> None: ...
